//! Security descriptors of pipes, and who is at their other end.

#![expect(
    unsafe_code,
    reason = "Win32 is called here and nowhere else in the server"
)]

use std::io::{Error, Result};
use std::os::windows::io::RawHandle;
use std::path::Path;

use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};
use windows::Win32::Foundation::{CloseHandle, HANDLE, HLOCAL, LocalFree};
use windows::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows::Win32::Security::{
    GetSecurityDescriptorLength, GetTokenInformation, PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES,
    TOKEN_QUERY, TOKEN_USER, TokenUser,
};
use windows::Win32::System::Pipes::{GetNamedPipeClientProcessId, GetNamedPipeHandleStateW};
use windows::Win32::System::Threading::{
    GetCurrentProcess, OpenProcess, OpenProcessToken, PROCESS_NAME_WIN32,
    PROCESS_QUERY_LIMITED_INFORMATION, QueryFullProcessImageNameW,
};
use windows::core::{HSTRING, PWSTR};

/// A security descriptor in one piece, aligned as Windows wants it.
pub(super) struct Descriptor(Vec<u64>);

impl Descriptor {
    /// Reads a descriptor in the definition language.
    pub(super) fn read(sddl: &str) -> Result<Self> {
        let mut descriptor = PSECURITY_DESCRIPTOR::default();
        // SAFETY: the text lives as long as the call, and `descriptor` is written by it.
        unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                &HSTRING::from(sddl),
                SDDL_REVISION_1,
                &raw mut descriptor,
                None,
            )
        }
        .map_err(|error| Error::other(format!("{sddl:?} is no security descriptor: {error}")))?;
        // SAFETY: the call above has made the descriptor.
        let length = unsafe { GetSecurityDescriptorLength(descriptor) } as usize;
        let mut words = vec![0_u64; length.div_ceil(size_of::<u64>())];
        // SAFETY: the descriptor is self-relative: `length` bytes in one piece. The words have
        // room for them, and the two do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(
                descriptor.0.cast::<u8>(),
                words.as_mut_ptr().cast::<u8>(),
                length,
            );
        }
        // SAFETY: Windows has allocated it with LocalAlloc, and nobody uses it from here on.
        unsafe { LocalFree(Some(HLOCAL(descriptor.0))) };
        Ok(Self(words))
    }

    /// Creates an instance of a pipe with this descriptor.
    pub(super) fn create(
        &mut self,
        options: &ServerOptions,
        path: &Path,
    ) -> Result<NamedPipeServer> {
        let mut attributes = SECURITY_ATTRIBUTES {
            nLength: u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).unwrap_or(u32::MAX),
            lpSecurityDescriptor: self.0.as_mut_ptr().cast(),
            bInheritHandle: false.into(),
        };
        // SAFETY: the attributes and the descriptor in them live as long as the call.
        unsafe { options.create_with_security_attributes_raw(path, (&raw mut attributes).cast()) }
    }
}

/// The user that this process runs as, as a SID.
pub(super) fn own_user() -> Result<String> {
    let mut token = HANDLE::default();
    // SAFETY: nothing is asked of the caller.
    let process = unsafe { GetCurrentProcess() };
    // SAFETY: the pseudo handle of the own process is always valid; `token` is written.
    unsafe { OpenProcessToken(process, TOKEN_QUERY, &raw mut token) }?;
    let user = user_of(token);
    // SAFETY: the handle was opened above and is used no more.
    unsafe { CloseHandle(token) }?;
    user
}

fn user_of(token: HANDLE) -> Result<String> {
    // A SID has at most 68 bytes (SECURITY_MAX_SID_SIZE).
    let mut buffer = [0_u64; 32];
    let size = u32::try_from(size_of_val(&buffer)).unwrap_or(u32::MAX);
    let mut length = 0;
    // SAFETY: the buffer is writable for the size that goes with it, and aligned for the
    // structure.
    unsafe {
        GetTokenInformation(
            token,
            TokenUser,
            Some(buffer.as_mut_ptr().cast()),
            size,
            &raw mut length,
        )
    }?;
    // SAFETY: Windows has written a TOKEN_USER at the start of the aligned buffer.
    let user = unsafe { &*buffer.as_ptr().cast::<TOKEN_USER>() };
    let mut text = PWSTR::null();
    // SAFETY: the SID lies in the buffer behind the structure; `text` is written.
    unsafe { ConvertSidToStringSidW(user.User.Sid, &raw mut text) }?;
    // SAFETY: Windows has written a text with a NUL at its end.
    let sid = unsafe { text.to_string() };
    // SAFETY: Windows has allocated it with LocalAlloc, and nobody uses it from here on.
    unsafe { LocalFree(Some(HLOCAL(text.0.cast()))) };
    sid.map_err(Error::other)
}

/// How many instances the pipe has, whoever has made them.
pub(super) fn instances(pipe: RawHandle) -> Result<u32> {
    let mut instances = 0;
    // SAFETY: the handle is that of a pipe which the caller holds open; `instances` is written.
    unsafe {
        GetNamedPipeHandleStateW(
            HANDLE(pipe),
            None,
            Some(&raw mut instances),
            None,
            None,
            None,
        )
    }
    .ok()?;
    Ok(instances)
}

/// The process at the other end of a pipe.
pub(super) fn client_process(pipe: RawHandle) -> Option<u32> {
    let mut process = 0;
    // SAFETY: the handle is that of a pipe which the caller holds open; `process` is written.
    unsafe { GetNamedPipeClientProcessId(HANDLE(pipe), &raw mut process) }.ok()?;
    Some(process)
}

/// The program of a process.
pub(crate) fn image_of(process: u32) -> Option<String> {
    // SAFETY: no pointers are passed.
    let handle = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, false, process) }.ok()?;
    let mut buffer = [0_u16; 1024];
    let mut length = u32::try_from(buffer.len()).unwrap_or(0);
    // SAFETY: the handle is open, the buffer is writable for the length that goes with it.
    let queried = unsafe {
        QueryFullProcessImageNameW(
            handle,
            PROCESS_NAME_WIN32,
            PWSTR(buffer.as_mut_ptr()),
            &raw mut length,
        )
    };
    // SAFETY: the handle was opened above and is used no more. A failure leaves nothing to do.
    let _ = unsafe { CloseHandle(handle) };
    queried.ok()?;
    let text = buffer.get(..usize::try_from(length).ok()?)?;
    Some(String::from_utf16_lossy(text))
}

#[cfg(test)]
mod tests {
    use std::os::windows::io::AsRawHandle as _;
    use std::path::PathBuf;

    use windows::Win32::Security::Authorization::{
        ConvertSecurityDescriptorToStringSecurityDescriptorW, GetSecurityInfo, SE_KERNEL_OBJECT,
    };
    use windows::Win32::Security::DACL_SECURITY_INFORMATION;

    use super::*;
    use crate::transport::sddl;

    fn pipe(name: &str) -> PathBuf {
        PathBuf::from(format!(r"\\.\pipe\{name}-{}", std::process::id()))
    }

    /// Who may open a pipe, as the system has it.
    fn list_of(pipe: RawHandle) -> String {
        let mut descriptor = PSECURITY_DESCRIPTOR::default();
        let what = DACL_SECURITY_INFORMATION;
        // SAFETY: the handle is open; `descriptor` is written.
        let asked = unsafe {
            GetSecurityInfo(
                HANDLE(pipe),
                SE_KERNEL_OBJECT,
                what,
                None,
                None,
                None,
                None,
                Some(&raw mut descriptor),
            )
        };
        asked.ok().expect("a descriptor");
        let mut text = PWSTR::null();
        // SAFETY: the call above has made the descriptor; `text` is written.
        unsafe {
            ConvertSecurityDescriptorToStringSecurityDescriptorW(
                descriptor,
                SDDL_REVISION_1,
                what,
                &raw mut text,
                None,
            )
        }
        .expect("a text");
        // SAFETY: Windows has written a text with a NUL at its end.
        let list = unsafe { text.to_string() };
        // SAFETY: Windows has allocated it with LocalAlloc, and nobody uses it from here on.
        unsafe { LocalFree(Some(HLOCAL(text.0.cast()))) };
        // SAFETY: the same.
        unsafe { LocalFree(Some(HLOCAL(descriptor.0))) };
        list.expect("UTF-16")
    }

    #[tokio::test]
    async fn a_pipe_has_the_access_list_that_was_written_for_it() {
        let user = own_user().expect("a user");
        let asked = "D:P(A;;0x12019b;;;S-1-5-21-1-2-3-1105)";
        for (name, asked) in [("default", None), ("chosen", Some(asked))] {
            let written = sddl::of_pipes(asked, &user).expect("a descriptor");
            let mut descriptor = Descriptor::read(&written).expect(&written);
            let pipe = descriptor.create(&ServerOptions::new(), &pipe(name));
            let list = list_of(pipe.expect("a pipe").as_raw_handle());
            let entries = |text: &str| text.matches('(').count();
            assert_eq!(entries(&list), entries(&written), "{list}");
            for part in ["D:P(", "(A;;0x12019b;;;", "(A;;0x12019f;;;"] {
                assert!(list.contains(part), "{part} in {list}");
            }
            assert!(!list.contains(";;;WD)"), "nothing for everyone: {list}");
            assert_eq!(
                list.contains("S-1-5-21-1-2-3-1105"),
                asked.is_some(),
                "{list}"
            );
        }
    }
}
