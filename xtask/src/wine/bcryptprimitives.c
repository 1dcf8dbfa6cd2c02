/* bcryptprimitives.dll for a Wine that does not have it: the one function that programs of
   current Rust and Go import, over the function that older ones used. */

#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length)
{
    const ULONG most = 1 << 20;

    while (length > 0) {
        ULONG part = length < most ? (ULONG)length : most;

        if (!SystemFunction036(buffer, part))
            return FALSE;
        buffer += part;
        length -= part;
    }
    return TRUE;
}
