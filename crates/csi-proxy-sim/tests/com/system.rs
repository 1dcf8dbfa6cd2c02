//! The group system, with and without COM.

use csi_proxy_sim::SimNode;
use csi_proxy_sim::services::Service;

use crate::{Compared, NEVER};

fn node() -> SimNode {
    let node = SimNode::builder().build();
    node.change(|state| {
        state.bios.serial_number = Some("4121-0001".to_owned());
        state
            .services
            .put(Service::new("base", "The base").running());
        let dependent = Service::new("it's \"on\" top\\", "A dependent");
        state.services.put(dependent.depends_on("base").running());
    });
    node
}

#[test]
fn the_system_group_answers_the_same_through_com() {
    let both = Compared::new(node);
    both.same(|host| host.system().bios_serial_number(NEVER));
    for name in ["base", "it's \"on\" top\\", "none"] {
        both.same(|host| host.system().service(name, NEVER));
        both.same(|host| host.system().start_service(name, NEVER));
    }
    both.same(|host| host.system().stop_service("base", false, NEVER));
    for _ in 0..2 {
        both.same(|host| host.system().stop_service("base", true, NEVER));
    }
    both.same(|host| host.system().start_service("base", NEVER));
}
