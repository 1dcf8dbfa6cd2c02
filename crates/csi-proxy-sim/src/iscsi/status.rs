//! Status codes of the iSCSI initiator.
//!
//! Source: <https://learn.microsoft.com/windows-hardware/drivers/storage/iscsi-status-qualifiers>

macro_rules! status {
    ($($name:ident = $code:literal;)+) => {
        $(pub(super) const $name: u32 = $code;)+
    };
}

status! {
    CONNECTION_FAILED = 0xEFFF_0003;
    AUTHENTICATION_FAILURE = 0xEFFF_0009;
    INVALID_SESSION_ID = 0xEFFF_001C;
    AUTHENTICATION_INFO_MISSING = 0xEFFF_0028;
    TARGET_UNKNOWN = 0xEFFF_0029;
    PORTAL_EXISTS = 0xEFFF_0032;
    SERVICE_NOT_RUNNING = 0xEFFF_003E;
    ALREADY_LOGGED_IN = 0xEFFF_003F;
    DEVICE_IN_USE = 0xEFFF_0040;
    NOT_PERSISTENT = 0xEFFF_0042;
    PORTAL_NOT_FOUND = 0xEFFF_0043;
    TARGET_SECRET_LENGTH = 0xEFFF_004B;
    INITIATOR_SECRET_LENGTH = 0xEFFF_004C;
    INVALID_USER = 0xEFFF_004D;
    INVALID_AUTHENTICATION = 0xEFFF_004E;
    INVALID_PARAMETER = 0xEFFF_0056;
}
