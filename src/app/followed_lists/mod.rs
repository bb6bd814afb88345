//! Lists that follow a source: what they hold, how their sources are, and the tasks that follow them.

mod follow;
mod followed_list;
mod tasks;

pub(in crate::app) use self::followed_list::FollowedList;
pub(in crate::app) use self::followed_list::OpenLists;
pub(in crate::app) use self::tasks::FollowTasks;
