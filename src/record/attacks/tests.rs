use super::*;

