//! Passwords of the simulated servers do not go into a trace.

use csi_proxy::trace::Secrets;

use crate::password::Password;
use crate::state::State;

impl State {
    /// Puts a placeholder in the place of every password.
    pub(super) fn hide_passwords(&mut self, secrets: &mut Secrets) {
        let mut hide = |password: &mut Password| {
            *password = Password::from(secrets.hide(password.expose()));
        };
        for server in self.smb.servers.values_mut() {
            server.accounts.values_mut().for_each(&mut hide);
        }
        for mapping in &mut self.smb.mappings {
            mapping.password.iter_mut().for_each(&mut hide);
        }
        for target in self.iscsi.targets.values_mut() {
            if let Some(chap) = &mut target.chap {
                hide(&mut chap.secret);
                chap.mutual_secret.iter_mut().for_each(&mut hide);
            }
        }
        let sessions = self.iscsi.sessions.iter_mut();
        let logins = sessions.map(|session| &mut session.login);
        for login in logins.chain(&mut self.iscsi.persistent) {
            login.secret.iter_mut().for_each(&mut hide);
        }
        self.iscsi.initiator_secret.iter_mut().for_each(&mut hide);
    }
}
