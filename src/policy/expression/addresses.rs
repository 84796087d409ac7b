//! The IP address and CIDR libraries of Kubernetes' CEL.

use cel::common::types::{STRING_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use core::net::{IpAddr, Ipv6Addr};
use std::any::Any;
use std::sync::LazyLock;

use super::library::{CallArgs, CallResult, Overload, add_all, add_members, returned, text_arg};
use super::values::{checked_text, failed, number, opaque, reading};

/// Adds the functions of both libraries.
pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    reading!(env, "ip", "isIP", Address);
    reading!(env, "cidr", "isCIDR", Network);
    add_addresses(env)?;
    add_networks(env)
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

fn add_addresses(env: &mut Env) -> Result<(), DeclarationError> {
    let functions: [Overload; 2] = [
        (
            "ip.isCanonical",
            "podgraft_ip_canonical",
            vec![STRING_TYPE],
            |args| {
                let text = checked_text(&args)?;
                let address = Address::read(&text);
                let address =
                    address.ok_or_else(|| failed("ip.isCanonical", "the text is no ip"))?;
                returned(address.0.to_string() == text)
            },
        ),
        (
            "string",
            "podgraft_ip_string",
            vec![Address::kind()],
            |args| returned(address(&args)?.to_string()),
        ),
    ];
    add_all(env, functions)?;
    let of_addresses: [Overload; 6] = [
        ("family", "podgraft_ip_family", vec![], |args| {
            returned(if address(&args)?.is_ipv4() { 4_i64 } else { 6 })
        }),
        ("isUnspecified", "podgraft_ip_unspecified", vec![], |args| {
            returned(address(&args)?.is_unspecified())
        }),
        ("isLoopback", "podgraft_ip_loopback", vec![], |args| {
            returned(address(&args)?.is_loopback())
        }),
        ("isLinkLocalUnicast", "podgraft_ip_link", vec![], |args| {
            returned(is_link_local(address(&args)?))
        }),
        (
            "isLinkLocalMulticast",
            "podgraft_ip_link_many",
            vec![],
            |args| returned(is_link_local_multicast(address(&args)?)),
        ),
        ("isGlobalUnicast", "podgraft_ip_global", vec![], |args| {
            returned(is_global_unicast(address(&args)?))
        }),
    ];
    add_members(env, Address::kind, of_addresses)
}

fn address(args: &CallArgs<'_, '_>) -> Result<IpAddr, ExecutionError> {
    Ok(Address::arg(args, 0)?.0)
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
struct Network {
    address: IpAddr,
    bits: u32,
}

opaque!(Network, NETWORK, "net.CIDR");

impl Network {
    fn read(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let Address(address) = Address::read(address)?;
        let bits = u32::try_from(number(bits)?).ok()?;
        (bits <= width(address)).then_some(Network { address, bits })
    }

    /// The address with the bits behind the prefix cleared.
    fn masked(&self) -> IpAddr {
        let kept = |value: u128, width: u32| match self.bits {
            0 => 0,
            bits => value >> (width - bits) << (width - bits),
        };
        match self.address {
            IpAddr::V4(address) => {
                let kept = kept(u128::from(address.to_bits()), 32);
                IpAddr::V4(u32::try_from(kept).unwrap_or_default().into())
            }
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(kept(address.to_bits(), 128))),
        }
    }

    fn contains(&self, address: IpAddr, bits: u32) -> bool {
        let candidate = Network {
            address,
            bits: self.bits,
        };
        width(address) == width(self.address)
            && bits >= self.bits
            && candidate.masked() == self.masked()
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn add_networks(env: &mut Env) -> Result<(), DeclarationError> {
    let network = || vec![Network::kind()];
    let text = || vec![STRING_TYPE];
    let address = || vec![Address::kind()];
    env.add_overload("string", "podgraft_cidr_string", network(), |args| {
        let Network { address, bits } = Network::arg(&args, 0)?;
        returned(format!("{address}/{bits}"))
    })?;
    let of_networks: [Overload; 7] = [
        ("containsIP", "podgraft_cidr_ip", address(), |args| {
            contains_address(&args, Address::arg(&args, 1)?)
        }),
        ("containsIP", "podgraft_cidr_ip_text", text(), |args| {
            let address = Address::read(&text_arg(&args, 1)?);
            let address = address.ok_or_else(|| failed("containsIP", "the text is no ip"));
            contains_address(&args, address?)
        }),
        ("containsCIDR", "podgraft_cidr_cidr", network(), |args| {
            contains_network(&args, Network::arg(&args, 1)?)
        }),
        ("containsCIDR", "podgraft_cidr_text", text(), |args| {
            let network = Network::read(&text_arg(&args, 1)?);
            let network = network.ok_or_else(|| failed("containsCIDR", "the text is no cidr"));
            contains_network(&args, network?)
        }),
        ("ip", "podgraft_cidr_address", vec![], |args| {
            Ok(CowVal::owned(Address(Network::arg(&args, 0)?.address)))
        }),
        ("masked", "podgraft_cidr_masked", vec![], |args| {
            let network = Network::arg(&args, 0)?;
            let address = network.masked();
            Ok(CowVal::owned(Network { address, ..network }))
        }),
        ("prefixLength", "podgraft_cidr_prefix", vec![], |args| {
            returned(i64::from(Network::arg(&args, 0)?.bits))
        }),
    ];
    add_members(env, Network::kind, of_networks)
}

fn contains_address<'b, 'v>(
    args: &CallArgs<'b, 'v>,
    Address(address): Address,
) -> CallResult<'b, 'v> {
    returned(Network::arg(args, 0)?.contains(address, width(address)))
}

fn contains_network<'b, 'v>(args: &CallArgs<'b, 'v>, other: Network) -> CallResult<'b, 'v> {
    returned(Network::arg(args, 0)?.contains(other.address, other.bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_those_of_kubernetes() {
        for wrong in ["::ffff:1.2.3.4", "1.2.3.04", "fe80::1%eth0", "1.2.3", ""] {
            assert_eq!(Address::read(wrong), None, "{wrong}");
        }
        for wrong in [
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.0/08",
            "::/129",
            "10.0.0.0/-1",
        ] {
            assert_eq!(Network::read(wrong), None, "{wrong}");
        }
        let masked = |text: &str| Network::read(text).map(|network| network.masked().to_string());
        assert_eq!(masked("10.1.2.3/8").as_deref(), Some("10.0.0.0"));
        assert_eq!(masked("10.1.2.3/0").as_deref(), Some("0.0.0.0"));
        assert_eq!(masked("2001:db8::1/32").as_deref(), Some("2001:db8::"));
        assert_eq!(masked("::1/0").as_deref(), Some("::"));
    }
}
