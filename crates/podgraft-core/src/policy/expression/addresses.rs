//! The IP address and CIDR libraries of Kubernetes' CEL.

use cel::common::types::{STRING_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use core::net::IpAddr;
use ipnet::IpNet;
use std::any::Any;

use super::library::{
    CallArgs, CallResult, Overload, add_all, add_members, failed, returned, text_arg,
};
use super::values::{checked_text, opaque, opaque_arg, reading};

/// Adds the functions of both libraries.
pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    add_all(env, reading!("ip", "isIP", Address))?;
    add_all(env, reading!("cidr", "isCIDR", Network))?;
    add_all(env, FUNCTIONS)?;
    add_members(env, &ADDRESS, OF_ADDRESSES)?;
    add_members(env, &NETWORK, OF_NETWORKS)
}

/// An IP address. As in Kubernetes, without a zone and not IPv4-mapped IPv6.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address(IpAddr);

opaque!(Address, ADDRESS, "net.IP");

impl Address {
    fn read(text: &str) -> Option<Self> {
        let address: IpAddr = text.parse().ok()?;
        let is_mapped =
            matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some());
        (!is_mapped).then_some(Address(address))
    }
}

const FUNCTIONS: &[Overload] = &[
    ("ip.isCanonical", &[STRING_TYPE], |args| {
        let text = checked_text(&args)?;
        let address = Address::read(&text);
        let address =
            address.ok_or_else(|| failed("ip.isCanonical", "the text is not a valid ip"))?;
        returned(address.0.to_string() == text)
    }),
    ("string", &[ADDRESS], |args| {
        returned(address(&args)?.to_string())
    }),
    ("string", &[NETWORK], |args| {
        returned(network(&args)?.to_string())
    }),
];

const OF_ADDRESSES: &[Overload] = &[
    ("family", &[], |args| {
        returned(if address(&args)?.is_ipv4() { 4_i64 } else { 6 })
    }),
    ("isUnspecified", &[], |args| {
        returned(address(&args)?.is_unspecified())
    }),
    ("isLoopback", &[], |args| {
        returned(address(&args)?.is_loopback())
    }),
    ("isLinkLocalUnicast", &[], |args| {
        returned(is_link_local(address(&args)?))
    }),
    ("isLinkLocalMulticast", &[], |args| {
        returned(is_link_local_multicast(address(&args)?))
    }),
    ("isGlobalUnicast", &[], |args| {
        returned(is_global_unicast(address(&args)?))
    }),
];

fn address(args: &CallArgs<'_, '_>) -> Result<IpAddr, ExecutionError> {
    Ok(opaque_arg::<Address>(args, 0)?.0)
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// 224.0.0.0/24 or ff02::/16, with any IPv6 flags.
fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_global_unicast(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    let is_other = address.is_unspecified() || address.is_loopback() || address.is_multicast();
    !is_broadcast && !is_other && !is_link_local(address)
}

/// A network: an address and the length of its prefix in bits.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Network(IpNet);

opaque!(Network, NETWORK, "net.CIDR");

impl Network {
    fn read(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let Address(address) = Address::read(address)?;
        // A number without sign and leading zeros.
        let bits = Some(bits).filter(|bits| *bits == "0" || !bits.starts_with(['0', '+']));
        IpNet::new(address, bits?.parse().ok()?).ok().map(Network)
    }
}

const OF_NETWORKS: &[Overload] = &[
    ("containsIP", &[ADDRESS], |args| {
        let Address(address) = opaque_arg(&args, 1)?;
        contains(&args, address.into())
    }),
    ("containsIP", &[STRING_TYPE], |args| {
        let address = Address::read(&text_arg(&args, 1)?);
        let address = address.ok_or_else(|| failed("containsIP", "the text is not a valid ip"))?;
        contains(&args, address.0.into())
    }),
    ("containsCIDR", &[NETWORK], |args| {
        let Network(other) = opaque_arg(&args, 1)?;
        contains(&args, other)
    }),
    ("containsCIDR", &[STRING_TYPE], |args| {
        let network = Network::read(&text_arg(&args, 1)?);
        let network =
            network.ok_or_else(|| failed("containsCIDR", "the text is not a valid cidr"))?;
        contains(&args, network.0)
    }),
    ("ip", &[], |args| {
        Ok(CowVal::owned(Address(network(&args)?.addr())))
    }),
    ("masked", &[], |args| {
        Ok(CowVal::owned(Network(network(&args)?.trunc())))
    }),
    ("prefixLength", &[], |args| {
        returned(i64::from(network(&args)?.prefix_len()))
    }),
];

fn network(args: &CallArgs<'_, '_>) -> Result<IpNet, ExecutionError> {
    Ok(opaque_arg::<Network>(args, 0)?.0)
}

fn contains<'b, 'v>(args: &CallArgs<'b, 'v>, other: IpNet) -> CallResult<'b, 'v> {
    returned(network(args)?.contains(&other))
}
