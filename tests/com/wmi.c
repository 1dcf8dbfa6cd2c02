/* A client of WMI that knows nothing of a simulated node. Prints the disks of the machine that it
   runs on; with the number of a disk, brings that one online and
   initialises it first.

   x86_64-w64-mingw32-gcc -Wall -o wmi.exe wmi.c -lwbemuuid -lole32 -loleaut32 */

#define COBJMACROS
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>
#include <windows.h>
#include <wbemidl.h>

/* Ends the program with the name of the call that failed and its HRESULT. */
static void check(HRESULT result, const char *call)
{
    if (SUCCEEDED(result))
        return;
    printf("%s: 0x%08lX\n", call, (unsigned long)result);
    exit(1);
}

static IWbemServices *connect_storage(void)
{
    BSTR namespace = SysAllocString(L"ROOT\\Microsoft\\Windows\\Storage");
    IWbemLocator *locator = NULL;
    IWbemServices *services = NULL;

    check(CoCreateInstance(&CLSID_WbemLocator, NULL, CLSCTX_INPROC_SERVER, &IID_IWbemLocator,
                           (void **)&locator),
          "CoCreateInstance");
    check(IWbemLocator_ConnectServer(locator, namespace, NULL, NULL, NULL, 0, NULL, NULL, &services),
          "ConnectServer");
    check(CoSetProxyBlanket((IUnknown *)services, RPC_C_AUTHN_WINNT, RPC_C_AUTHZ_NONE, NULL,
                            RPC_C_AUTHN_LEVEL_PKT_PRIVACY, RPC_C_IMP_LEVEL_IMPERSONATE, NULL,
                            EOAC_NONE),
          "CoSetProxyBlanket");
    IWbemLocator_Release(locator);
    SysFreeString(namespace);
    return services;
}

static IEnumWbemClassObject *query(IWbemServices *services, const wchar_t *text)
{
    BSTR language = SysAllocString(L"WQL"), wql = SysAllocString(text);
    IEnumWbemClassObject *rows = NULL;

    check(IWbemServices_ExecQuery(services, language, wql,
                                  WBEM_FLAG_FORWARD_ONLY | WBEM_FLAG_RETURN_IMMEDIATELY, NULL,
                                  &rows),
          "ExecQuery");
    SysFreeString(language);
    SysFreeString(wql);
    return rows;
}

/* The next row, or NULL behind the last one. */
static IWbemClassObject *next(IEnumWbemClassObject *rows)
{
    IWbemClassObject *row = NULL;
    ULONG count = 0;

    check(IEnumWbemClassObject_Next(rows, WBEM_INFINITE, 1, &row, &count), "Next");
    return count == 1 ? row : NULL;
}

static VARIANT get(IWbemClassObject *object, const wchar_t *name, VARTYPE expected)
{
    VARIANT value;

    VariantInit(&value);
    check(IWbemClassObject_Get(object, name, 0, &value, NULL, NULL), "Get");
    if (V_VT(&value) != expected) {
        printf("%ls has the type %d, expected %d\n", name, V_VT(&value), expected);
        exit(1);
    }
    return value;
}

/* The parameters of a method of MSFT_Disk, all null. */
static IWbemClassObject *parameters_of(IWbemServices *services, const wchar_t *method)
{
    BSTR class = SysAllocString(L"MSFT_Disk");
    IWbemClassObject *definition = NULL, *signature = NULL, *parameters = NULL;

    check(IWbemServices_GetObject(services, class, 0, NULL, &definition, NULL), "GetObject");
    check(IWbemClassObject_GetMethod(definition, method, 0, &signature, NULL), "GetMethod");
    check(IWbemClassObject_SpawnInstance(signature, 0, &parameters), "SpawnInstance");
    IWbemClassObject_Release(signature);
    IWbemClassObject_Release(definition);
    SysFreeString(class);
    return parameters;
}

/* Invokes a method of a disk and prints what it returned. */
static void invoke(IWbemServices *services, long number, const wchar_t *name,
                   IWbemClassObject *parameters)
{
    BSTR method = SysAllocString(name);
    IWbemClassObject *disk, *answer = NULL;
    IEnumWbemClassObject *rows;
    wchar_t wql[80];
    VARIANT path, code;

    swprintf(wql, 80, L"SELECT __PATH FROM MSFT_Disk WHERE Number = %ld", number);
    rows = query(services, wql);
    disk = next(rows);
    if (!disk) {
        printf("there is no disk %ld\n", number);
        exit(1);
    }
    path = get(disk, L"__PATH", VT_BSTR);
    check(IWbemServices_ExecMethod(services, V_BSTR(&path), method, 0, NULL, parameters, &answer,
                                   NULL),
          "ExecMethod");
    code = get(answer, L"ReturnValue", VT_I4);
    printf("%ls of disk %ld returned %ld\n", name, number, V_I4(&code));
    VariantClear(&path);
    IWbemClassObject_Release(answer);
    IWbemClassObject_Release(disk);
    IEnumWbemClassObject_Release(rows);
    SysFreeString(method);
}

/* Brings a disk online and gives it a partition table. */
static void prepare(IWbemServices *services, long number)
{
    IWbemClassObject *parameters = parameters_of(services, L"Initialize");
    VARIANT style;

    V_VT(&style) = VT_I4;
    V_I4(&style) = 2; /* GPT */
    check(IWbemClassObject_Put(parameters, L"PartitionStyle", 0, &style, 0), "Put");
    invoke(services, number, L"Online", NULL);
    invoke(services, number, L"Initialize", parameters);
    IWbemClassObject_Release(parameters);
}

/* Numbers of 64 bits are text in WMI. */
static void print_disks(IWbemServices *services)
{
    IEnumWbemClassObject *rows = query(services, L"SELECT Number, Size, IsOffline FROM MSFT_Disk");
    IWbemClassObject *disk;

    while ((disk = next(rows)) != NULL) {
        VARIANT number = get(disk, L"Number", VT_I4);
        VARIANT size = get(disk, L"Size", VT_BSTR);
        VARIANT offline = get(disk, L"IsOffline", VT_BOOL);

        printf("disk %ld: %ls bytes, %s\n", V_I4(&number), V_BSTR(&size),
               V_BOOL(&offline) ? "offline" : "online");
        VariantClear(&size);
        IWbemClassObject_Release(disk);
    }
    IEnumWbemClassObject_Release(rows);
}

int main(int argc, char **argv)
{
    IWbemServices *services;

    check(CoInitializeEx(NULL, COINIT_MULTITHREADED), "CoInitializeEx");
    services = connect_storage();
    if (argc > 1)
        prepare(services, atol(argv[1]));
    print_disks(services);
    IWbemServices_Release(services);
    CoUninitialize();
    return 0;
}
