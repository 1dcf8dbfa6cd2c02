//! iSCSI: portals, targets, and the disks behind them.
//!
//! Source: the `MSFT_iSCSI…` classes,
//! <https://learn.microsoft.com/previous-versions/windows/desktop/iscsidisc/iscsi-discovery-library-reference>.
//! All of it needs the service `MSiSCSI`.

mod chap;
mod portal;

use crate::cim::{Associators, Invoke, Namespace, Query};
use crate::clock::Deadline;
use crate::error::{Error, ErrorKind, Result};
use crate::host::Host;
use crate::ids::DiskNumber;
use crate::operation::Operation;
use crate::row::Row;
use crate::system::{ServiceState, service_state};

pub use chap::{Authentication, ChapSecret};
pub use portal::{NodeAddress, Portal};

/// The service of the initiator.
const SERVICE: &str = "MSiSCSI";

const PORTAL_CLASS: &str = "MSFT_iSCSITargetPortal";
const TARGET_CLASS: &str = "MSFT_iSCSITarget";
const SESSION_CLASS: &str = "MSFT_iSCSISession";

/// The group; made by [`Host::iscsi`].
#[derive(Clone, Copy)]
pub struct Iscsi<'a> {
    host: &'a Host,
}

impl Host {
    /// iSCSI portals, targets and their disks.
    pub fn iscsi(&self) -> Iscsi<'_> {
        Iscsi { host: self }
    }
}

/// Each operation is [`ErrorKind::FailedPrecondition`] when the service `MSiSCSI` does not
/// run; the error says to start it.
impl Iscsi<'_> {
    /// Registers a portal, which makes the initiator ask it for its targets. A portal that
    /// is registered is success.
    pub fn add_target_portal(&self, portal: &Portal, deadline: Deadline) -> Result<()> {
        let operation = self.operation("iscsi add target portal", deadline);
        let add = || {
            if find_portal(&operation, portal)?.is_some() {
                return Ok(());
            }
            let new = Invoke::on_class(Namespace::Storage, PORTAL_CLASS, "New")
                .with("TargetPortalAddress", portal.address())
                .with("TargetPortalPortNumber", u32::from(portal.port()));
            accept(
                operation.invoke(portal, &new).map(|_| ()),
                ErrorKind::AlreadyExists,
            )
        };
        add().map_err(|error| explained(&operation, error))
    }

    /// The names of the targets that a registered portal offers.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the portal is not registered.
    pub fn discover_target_portal(
        &self,
        portal: &Portal,
        deadline: Deadline,
    ) -> Result<Vec<NodeAddress>> {
        let operation = self.operation("iscsi discover target portal", deadline);
        let discover = || {
            let Some(row) = find_portal(&operation, portal)? else {
                check_service(&operation)?;
                let detail = "the portal is not registered; add it first";
                return Err(operation.error(ErrorKind::NotFound, portal, detail));
            };
            let request = Associators::new(
                Namespace::Storage,
                row.path(),
                "MSFT_iSCSITargetToiSCSITargetPortal",
                TARGET_CLASS,
                &["NodeAddress"],
            );
            let rows = operation.associators(&request)?;
            rows.iter()
                .map(|row| row.text("NodeAddress").map(NodeAddress::reported))
                .collect()
        };
        discover().map_err(|error| explained(&operation, error))
    }

    /// All registered portals.
    pub fn list_target_portals(&self, deadline: Deadline) -> Result<Vec<Portal>> {
        let operation = self.operation("iscsi list target portals", deadline);
        let list = || -> Result<Vec<Portal>> {
            let rows = operation.query(&portals())?;
            if rows.is_empty() {
                check_service(&operation)?;
            }
            rows.iter()
                .map(|row| read_portal(&operation, row))
                .collect()
        };
        list().map_err(|error| explained(&operation, error))
    }

    /// Removes a portal from the registered ones. One that is not registered is success.
    pub fn remove_target_portal(&self, portal: &Portal, deadline: Deadline) -> Result<()> {
        let operation = self.operation("iscsi remove target portal", deadline);
        let remove = || {
            let Some(row) = find_portal(&operation, portal)? else {
                return check_service(&operation);
            };
            let remove = Invoke::on(Namespace::Storage, PORTAL_CLASS, row.path(), "Remove")
                .with("TargetPortalPortNumber", u32::from(portal.port()));
            accept(
                operation.invoke(portal, &remove).map(|_| ()),
                ErrorKind::NotFound,
            )
        };
        remove().map_err(|error| explained(&operation, error))
    }

    /// Logs in to a target through a portal. A target that is connected is success.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when no portal has offered the target,
    /// [`ErrorKind::Unauthenticated`] when it refuses the credentials,
    /// [`ErrorKind::InvalidArgument`] for a user that is empty.
    pub fn connect_target(
        &self,
        portal: &Portal,
        target: &NodeAddress,
        authentication: &Authentication,
        deadline: Deadline,
    ) -> Result<()> {
        let operation = self.operation("iscsi connect target", deadline);
        let connect = || {
            let connect = login(&operation, portal, target, authentication)?;
            if is_connected(&operation, target)? {
                return Ok(());
            }
            accept(
                operation.invoke(target, &connect).map(|_| ()),
                ErrorKind::AlreadyExists,
            )
        };
        connect().map_err(|error| explained(&operation, error))
    }

    /// Ends all sessions with a target, and keeps Windows from opening them again at its
    /// next start. A target without sessions is success.
    ///
    /// # Errors
    /// [`ErrorKind::FailedPrecondition`] when a disk of the target is in use.
    pub fn disconnect_target(&self, target: &NodeAddress, deadline: Deadline) -> Result<()> {
        let operation = self.operation("iscsi disconnect target", deadline);
        let disconnect = || {
            let Some(row) = find_target(&operation, target)? else {
                return check_service(&operation);
            };
            let request = Associators::new(
                Namespace::Storage,
                row.path(),
                "MSFT_iSCSITargetToiSCSISession",
                SESSION_CLASS,
                &["SessionIdentifier", "IsPersistent"],
            );
            for session in operation.associators(&request)? {
                end_session(&operation, target, &row, &session)?;
            }
            Ok(())
        };
        disconnect().map_err(|error| explained(&operation, error))
    }

    /// The numbers of the disks of a connected target, in rising order.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when no portal has offered the target,
    /// [`ErrorKind::FailedPrecondition`] when it is not connected.
    pub fn target_disks(
        &self,
        target: &NodeAddress,
        deadline: Deadline,
    ) -> Result<Vec<DiskNumber>> {
        let operation = self.operation("iscsi target disks", deadline);
        let disks = || {
            let connections = connections(&operation, target)?;
            let mut disks = Vec::new();
            for connection in &connections {
                let request = Associators::new(
                    Namespace::Storage,
                    connection.path(),
                    "MSFT_iSCSIConnectionToDisk",
                    "MSFT_Disk",
                    &["Number"],
                );
                for disk in operation.associators(&request)? {
                    disks.push(DiskNumber(disk.u32("Number")?));
                }
            }
            // Several connections lead to the same disk.
            disks.sort_unstable();
            disks.dedup();
            Ok(disks)
        };
        disks().map_err(|error| explained(&operation, error))
    }

    /// Sets the secret by which this initiator checks targets with mutual CHAP.
    pub fn set_mutual_chap_secret(&self, secret: &ChapSecret, deadline: Deadline) -> Result<()> {
        let operation = self.operation("iscsi set mutual chap secret", deadline);
        let set = Invoke::on_class(Namespace::Storage, SESSION_CLASS, "SetCHAPSecret")
            .with("ChapSecret", secret.secret());
        operation
            .invoke("the initiator", &set)
            .map(|_| ())
            .map_err(|error| explained(&operation, error))
    }

    fn operation(&self, name: &'static str, deadline: Deadline) -> Operation<'_> {
        Operation::new(self.host, name, deadline)
    }
}

fn portals() -> Query {
    Query::new(
        Namespace::Storage,
        PORTAL_CLASS,
        &["TargetPortalAddress", "TargetPortalPortNumber"],
    )
}

/// The portal as it is registered. Windows keeps addresses as they were written, so they are
/// compared after reading them.
fn find_portal(operation: &Operation<'_>, portal: &Portal) -> Result<Option<Row>> {
    let query = portals().with("TargetPortalPortNumber", u32::from(portal.port()));
    for row in operation.query(&query)? {
        if read_portal(operation, &row)? == *portal {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

fn read_portal(operation: &Operation<'_>, row: &Row) -> Result<Portal> {
    let port = row.u32("TargetPortalPortNumber")?;
    let wrong = |detail: String| operation.error(ErrorKind::Internal, PORTAL_CLASS, detail);
    let port = u16::try_from(port).map_err(|_| wrong(format!("{port} is no TCP port")))?;
    Portal::new(row.text("TargetPortalAddress")?, port).map_err(|error| wrong(error.to_string()))
}

fn find_target(operation: &Operation<'_>, target: &NodeAddress) -> Result<Option<Row>> {
    let query = Query::new(
        Namespace::Storage,
        TARGET_CLASS,
        &["NodeAddress", "IsConnected"],
    )
    .with("NodeAddress", target.as_str());
    Ok(operation.query(&query)?.into_iter().next())
}

fn is_connected(operation: &Operation<'_>, target: &NodeAddress) -> Result<bool> {
    match find_target(operation, target)? {
        Some(row) => row.boolean("IsConnected"),
        None => {
            check_service(operation)?;
            let detail = "no portal has offered this target; add its portal first";
            Err(operation.error(ErrorKind::NotFound, target, detail))
        }
    }
}

fn login(
    operation: &Operation<'_>,
    portal: &Portal,
    target: &NodeAddress,
    authentication: &Authentication,
) -> Result<Invoke> {
    let (kind, user) = authentication.parameters();
    let login = Invoke::on_class(Namespace::Storage, TARGET_CLASS, "Connect")
        .with("NodeAddress", target.as_str())
        .with("TargetPortalAddress", portal.address())
        .with("TargetPortalPortNumber", u32::from(portal.port()))
        .with("AuthenticationType", kind);
    match user {
        None => Ok(login),
        Some(("", _)) => Err(operation.error(
            ErrorKind::InvalidArgument,
            "chap_username \"\"",
            "is empty; expected the CHAP user of the target",
        )),
        Some((username, secret)) => Ok(login
            .with("ChapUsername", username)
            .with("ChapSecret", secret.secret())),
    }
}

fn end_session(
    operation: &Operation<'_>,
    target: &NodeAddress,
    row: &Row,
    session: &Row,
) -> Result<()> {
    if session.optional_boolean("IsPersistent")?.unwrap_or(false) {
        let unregister = Invoke::on(
            Namespace::Storage,
            SESSION_CLASS,
            session.path(),
            "Unregister",
        );
        // Whatever it says, the session is not ended before this is done: without a session
        // nobody would find the login that is left.
        operation.invoke(target, &unregister)?;
    }
    let disconnect = Invoke::on(Namespace::Storage, TARGET_CLASS, row.path(), "Disconnect")
        .with("SessionIdentifier", session.text("SessionIdentifier")?);
    accept(
        operation.invoke(target, &disconnect).map(|_| ()),
        ErrorKind::NotFound,
    )
}

/// The connections of a target, at least one.
fn connections(operation: &Operation<'_>, target: &NodeAddress) -> Result<Vec<Row>> {
    let Some(row) = find_target(operation, target)? else {
        check_service(operation)?;
        let detail = "no portal has offered this target";
        return Err(operation.error(ErrorKind::NotFound, target, detail));
    };
    let request = Associators::new(
        Namespace::Storage,
        row.path(),
        "MSFT_iSCSITargetToiSCSIConnection",
        "MSFT_iSCSIConnection",
        &["ConnectionIdentifier"],
    );
    let connections = operation.associators(&request)?;
    match connections.is_empty() {
        true => Err(operation.error(
            ErrorKind::FailedPrecondition,
            target,
            "the target is not connected",
        )),
        false => Ok(connections),
    }
}

/// A kind of failure that says that there was nothing to do.
fn accept(result: Result<()>, kind: ErrorKind) -> Result<()> {
    match result {
        Err(error) if error.kind() == kind && error.code().is_some() => Ok(()),
        other => other,
    }
}

/// That nothing was found means something only while the service runs.
fn check_service(operation: &Operation<'_>) -> Result<()> {
    match service_state(operation, SERVICE)? {
        Some(ServiceState::Running) => Ok(()),
        state => Err(operation.error(
            ErrorKind::FailedPrecondition,
            format_args!("service {SERVICE}"),
            not_running(state),
        )),
    }
}

/// A failure that Windows gave a code for, with the reason when it is the service.
fn explained(operation: &Operation<'_>, error: Error) -> Error {
    if error.code().is_none() {
        return error;
    }
    match service_state(operation, SERVICE) {
        Ok(Some(ServiceState::Running)) | Err(_) => error,
        Ok(state) => error
            .with_kind(ErrorKind::FailedPrecondition)
            .with_detail(not_running(state)),
    }
}

fn not_running(state: Option<ServiceState>) -> String {
    match state {
        None => format!("this node has no service {SERVICE}; install the iSCSI initiator"),
        Some(state) => format!("the service {SERVICE} is {state}; start it"),
    }
}
