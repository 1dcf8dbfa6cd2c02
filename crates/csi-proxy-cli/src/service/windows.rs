//! Windows' service manager.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use windows_service::service::{
    ServiceAccess, ServiceAction, ServiceActionType, ServiceControl, ServiceControlAccept,
    ServiceErrorControl, ServiceExitCode, ServiceFailureActions, ServiceFailureResetPeriod,
    ServiceInfo, ServiceStartType, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{
    ServiceControlHandlerResult, ServiceStatusHandle, register,
};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};
use windows_service::{define_windows_service, service_dispatcher};

use crate::failure::{Failure, Result};
use crate::serve::{self, ServeArgs};

/// The name that CSI Proxy 1.x has.
const NAME: &str = "csiproxy";

/// `ERROR_SERVICE_DOES_NOT_EXIST`
const DOES_NOT_EXIST: i32 = 1060;

/// `ERROR_SERVICE_EXISTS`
const EXISTS: i32 = 1073;

/// `ERROR_SERVICE_NOT_ACTIVE`
const NOT_ACTIVE: i32 = 1062;

/// How much more time than the running calls the service asks for to stop.
const SPARE: Duration = Duration::from_secs(5);

/// The arguments on their way to the thread that Windows starts.
static ARGUMENTS: Mutex<Option<ServeArgs>> = Mutex::new(None);

/// How serving ended, on the way back.
static ENDED: Mutex<Option<Result<()>>> = Mutex::new(None);

define_windows_service!(service_main, main_of_service);

/// Serves as the service, until the service manager ends it.
pub(crate) fn run(args: ServeArgs) -> Result<ExitCode> {
    *lock(&ARGUMENTS) = Some(args);
    service_dispatcher::start(NAME, service_main).map_err(|error| {
        Failure::from_error("--windows-service is for the service manager", &error)
    })?;
    match lock(&ENDED).take() {
        Some(Err(failure)) => Err(failure),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn main_of_service(_: Vec<OsString>) {
    let Some(args) = lock(&ARGUMENTS).take() else {
        return;
    };
    let ended = serve_as_service(&args);
    if let Err(failure) = &ended {
        tracing::error!("{failure}");
    }
    *lock(&ENDED) = Some(ended);
}

fn serve_as_service(args: &ServeArgs) -> Result<()> {
    let (stop, mut stopped) = mpsc::channel(1);
    let handler = move |control| match control {
        ServiceControl::Stop | ServiceControl::Shutdown => {
            // A second stop finds the first.
            let _ = stop.try_send(());
            ServiceControlHandlerResult::NoError
        }
        ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
        _ => ServiceControlHandlerResult::NotImplemented,
    };
    let told = register(NAME, handler).map_err(|error| failed("cannot be controlled", &error))?;
    tell(told, ServiceState::StartPending, Duration::from_secs(30), 0)?;
    let pending = args.shutdown_grace() + SPARE;
    let served = serve::block_on(serve::serve(args, async {
        // It runs from when it is waited for.
        let _ = tell(told, ServiceState::Running, Duration::ZERO, 0);
        stopped.recv().await;
        let _ = tell(told, ServiceState::StopPending, pending, 0);
        tracing::info!("stopped by the service manager: running calls have time to end");
    }));
    let code = u32::from(served.is_err());
    tell(told, ServiceState::Stopped, Duration::ZERO, code)?;
    served
}

/// Tells the service manager what the service does.
fn tell(told: ServiceStatusHandle, state: ServiceState, wait: Duration, code: u32) -> Result<()> {
    let controls_accepted = match state {
        ServiceState::Running => ServiceControlAccept::STOP | ServiceControlAccept::SHUTDOWN,
        _ => ServiceControlAccept::empty(),
    };
    let exit_code = match code {
        0 => ServiceExitCode::Win32(0),
        code => ServiceExitCode::ServiceSpecific(code),
    };
    told.set_service_status(ServiceStatus {
        service_type: ServiceType::OWN_PROCESS,
        current_state: state,
        controls_accepted,
        exit_code,
        checkpoint: 0,
        wait_hint: wait,
        process_id: None,
    })
    .map_err(|error| failed("cannot tell its state", &error))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(what: &str, error: &windows_service::Error) -> Failure {
    Failure::from_error(format_args!("the service {NAME} {what}"), error)
}

/// Makes the service, or gives one that is there the new flags.
pub(super) fn install(flags: Vec<OsString>) -> Result<()> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::from_error("the program cannot be found", &error))?;
    let arguments = ["serve", "--windows-service"].map(OsString::from);
    let info = ServiceInfo {
        name: NAME.into(),
        display_name: "CSI Proxy".into(),
        service_type: ServiceType::OWN_PROCESS,
        start_type: ServiceStartType::AutoStart,
        error_control: ServiceErrorControl::Normal,
        executable_path: program,
        launch_arguments: arguments.into_iter().chain(flags).collect(),
        dependencies: Vec::new(),
        account_name: None,
        account_password: None,
    };
    let manager = manager(ServiceManagerAccess::CONNECT | ServiceManagerAccess::CREATE_SERVICE)?;
    let access = ServiceAccess::CHANGE_CONFIG | ServiceAccess::START;
    let service = match manager.create_service(&info, access) {
        Err(error) if code(&error) == Some(EXISTS) => {
            let service = manager
                .open_service(NAME, access)
                .map_err(|error| failed("cannot be opened", &error))?;
            service
                .change_config(&info)
                .map_err(|error| failed("cannot be changed", &error))?;
            service
        }
        service => service.map_err(|error| failed("cannot be made", &error))?,
    };
    let restart = ServiceAction {
        action_type: ServiceActionType::Restart,
        delay: Duration::from_secs(10),
    };
    let on_failure = ServiceFailureActions {
        reset_period: ServiceFailureResetPeriod::After(Duration::from_secs(3600)),
        reboot_msg: None,
        command: None,
        actions: Some(vec![restart; 3]),
    };
    service
        .update_failure_actions(on_failure)
        .map_err(|error| failed("cannot be told to start again", &error))?;
    println!("the service {NAME} is installed; start it with: sc.exe start {NAME}");
    Ok(())
}

/// Stops the service and takes it away. None is success.
pub(super) fn uninstall() -> Result<()> {
    let access = ServiceAccess::STOP | ServiceAccess::DELETE | ServiceAccess::QUERY_STATUS;
    let service = match manager(ServiceManagerAccess::CONNECT)?.open_service(NAME, access) {
        Err(error) if code(&error) == Some(DOES_NOT_EXIST) => {
            println!("there is no service {NAME}");
            return Ok(());
        }
        service => service.map_err(|error| failed("cannot be opened", &error))?,
    };
    match service.stop() {
        Err(error) if code(&error) != Some(NOT_ACTIVE) => {
            return Err(failed("cannot be stopped", &error));
        }
        _ => {}
    }
    service
        .delete()
        .map_err(|error| failed("cannot be taken away", &error))?;
    println!("the service {NAME} goes as soon as it has stopped");
    Ok(())
}

/// Tells what the service does.
pub(super) fn status() -> Result<()> {
    let access = ServiceAccess::QUERY_STATUS;
    let service = match manager(ServiceManagerAccess::CONNECT)?.open_service(NAME, access) {
        Err(error) if code(&error) == Some(DOES_NOT_EXIST) => {
            println!("not installed");
            return Ok(());
        }
        service => service.map_err(|error| failed("cannot be opened", &error))?,
    };
    let status = service
        .query_status()
        .map_err(|error| failed("does not tell its state", &error))?;
    let state = match status.current_state {
        ServiceState::Stopped => "stopped",
        ServiceState::StartPending => "starting",
        ServiceState::StopPending => "stopping",
        ServiceState::Running => "running",
        ServiceState::ContinuePending => "going on",
        ServiceState::PausePending => "pausing",
        ServiceState::Paused => "paused",
    };
    println!("{state}");
    Ok(())
}

fn manager(access: ServiceManagerAccess) -> Result<ServiceManager> {
    ServiceManager::local_computer(None::<&str>, access).map_err(|error| {
        Failure::from_error(
            "the service manager cannot be reached; run it as an administrator",
            &error,
        )
    })
}

fn code(error: &windows_service::Error) -> Option<i32> {
    match error {
        windows_service::Error::Winapi(error) => error.raw_os_error(),
        _ => None,
    }
}
