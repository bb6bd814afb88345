//! The proposed routes, taken by the rules of the gateway: what a request is to one of them is not for this module to
//! guess. `/index.php/login` is a request for `/login` too, and several routes may count one request.

use crate::client::ClientIp;
use crate::gateway::forward::significant_headers::SignificantHeaders;
use crate::list::Membership;
use crate::replay::LoggedRequest;
use crate::replay::head::admitted;
use crate::request::RequestHead;
use crate::route::BodyMethods;
use crate::route::Case;
use crate::route::Condition;
use crate::route::RequestReadings;
use crate::route::Route;
use crate::route::RouteTable;
use crate::route::UpstreamId;
use crate::route::Walk;

use super::route::RouteShape;

/// The proposed routes in their order.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) shapes: Vec<RouteShape>,
    table: RouteTable,
}

impl Router {
    pub(super) fn new(shapes: Vec<RouteShape>) -> Self {
        let routes = shapes.into_iter().filter_map(|shape| Some((route(&shape)?, shape)));
        let (routes, shapes) = routes.unzip();
        Self { shapes, table: RouteTable::new(routes) }
    }

    /// Without the routes that none of these requests takes, because others stand before them.
    pub(super) fn of_traffic<'r>(shapes: Vec<RouteShape>, traffic: impl Iterator<Item = &'r LoggedRequest>) -> Self {
        let all = Self::new(shapes);
        let mut is_taken = vec![false; all.shapes.len()];
        for route in traffic.filter_map(|request| all.walk(request)?.primary) {
            is_taken[usize::from(route.0)] = true;
        }
        let shapes = all.shapes.into_iter().zip(is_taken);
        Self::new(shapes.filter(|(_, is_taken)| *is_taken).map(|(shape, _)| shape).collect())
    }

    /// The routes whose limits count a request. `None`: the gateway refuses it before any rule.
    pub(super) fn walk(&self, request: &LoggedRequest) -> Option<Walk> {
        let head = admitted(request, &SignificantHeaders::default(), false)?;
        let head = RequestHead::read(&head, ClientIp::new(request.client));
        let mut readings = RequestReadings::new(&head, BodyMethods::Known(&[]), &|_| Membership::None);
        Some(self.table.walk(&mut readings))
    }
}

/// `None`: its pattern cannot be written in a configuration.
fn route(shape: &RouteShape) -> Option<Route> {
    let text = format!("{} {}", shape.method, shape.path);
    Some(Route {
        condition: Condition::short(&text, Case::default()).ok()?,
        name: text.into(),
        domain: None,
        upstream: UpstreamId(0),
        only: None,
        limits: Vec::new(),
        outcome: None,
        known_clients: None,
        sessions: None,
        deny_response: None,
        denied: Vec::new(),
    })
}
