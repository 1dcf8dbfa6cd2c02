//! What a port call can fail with, and how tests tell what they counted.

use std::io::Write as _;

use csi_proxy::cim::CimCall;
use csi_proxy::codes::{Row, documented, hresult_codes, win32_codes};
use csi_proxy::port::Call;
use csi_proxy_sim::Fault;

/// The faults that make the n-th call, which is `call`, fail, each with the row of the codes
/// that the error must tell: the return values that are documented for a method, and all
/// codes of the call's family.
pub(crate) fn failures(call: &Call, n: u64) -> Vec<(Fault, Row)> {
    let fault = || Fault::at_call(n);
    let mut all: Vec<(Fault, Row)> = Vec::new();
    match call {
        Call::Cim(cim) => {
            if let CimCall::Invoke(_) = cim {
                let rows = documented(&call.operation());
                assert!(!rows.is_empty(), "{}", call.operation());
                all.extend(rows.into_iter().map(|row| (fault().returns(row.code), row)));
            }
            let rows = hresult_codes().iter();
            all.extend(rows.map(|row| (fault().hresult(row.code), *row)));
        }
        _ => {
            let rows = win32_codes().iter();
            all.extend(rows.map(|row| (fault().win32(row.code), *row)));
        }
    }
    all
}

/// Prints a line that is shown for a test that passes too.
pub(crate) fn report(line: &str) {
    let mut stderr = std::io::stderr().lock();
    writeln!(stderr, "{line}").unwrap();
}
