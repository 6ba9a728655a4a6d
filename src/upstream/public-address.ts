import { BlockList, isIPv4, isIPv6 } from 'node:net'

/**
 * Whether an IP address, as text, belongs to a machine on the public internet. What is no address, has a zone, or lies in
 * a range that IANA has set aside for anything else is not public; IPv6 that carries an IPv4 address is judged by that.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !closed.check(address, 'ipv4')
  if (!isIPv6(address) || address.includes('%')) return false
  const groups = groupsOf(address)
  const carried = carriers.find(({ prefix }) => prefix.every((group, index) => groups[index] === group))
  if (carried) return isPublicAddress(embedded(groups, carried.at))
  return unicast.check(address, 'ipv6') && !closed.check(address, 'ipv6')
}

/** IPv4 that is not for everyone: IANA's special-purpose registry (RFC 6890 and its successors), multicast, reserved. */
const closedIPv4 = [
  ['0.0.0.0', 8, 'this network: most systems take it for themselves'],
  ['10.0.0.0', 8, 'private'],
  ['100.64.0.0', 10, 'shared by carriers; metadata of one cloud'],
  ['127.0.0.0', 8, 'loopback'],
  ['168.63.129.16', 32, "one cloud's host agent, behind a public number"],
  ['169.254.0.0', 16, 'link-local; metadata of most clouds'],
  ['172.16.0.0', 12, 'private'],
  ['192.0.0.0', 24, 'protocol assignments; metadata of one cloud'],
  ['192.0.2.0', 24, 'documentation'],
  ['192.88.99.0', 24, '6to4 relays'],
  ['192.168.0.0', 16, 'private'],
  ['198.18.0.0', 15, 'benchmarks'],
  ['198.51.100.0', 24, 'documentation'],
  ['203.0.113.0', 24, 'documentation'],
  ['224.0.0.0', 4, 'multicast'],
  ['240.0.0.0', 4, 'reserved, and broadcast'],
] as const

/** Inside global unicast; all that lies outside of it (::, ::1, fc00::/7, fe80::/10, ff00::/8 …) is closed anyway. */
const closedIPv6 = [
  ['2001::', 23, 'protocol assignments, Teredo among them'],
  ['2001:db8::', 32, 'documentation'],
  ['3fff::', 20, 'documentation'],
] as const

const closed = new BlockList()
for (const [net, bits] of closedIPv4) closed.addSubnet(net, bits, 'ipv4')
for (const [net, bits] of closedIPv6) closed.addSubnet(net, bits, 'ipv6')

const unicast = new BlockList()
unicast.addSubnet('2000::', 3, 'ipv6')

/** Prefixes, in groups of 16 bits, whose addresses lead to an IPv4 address that begins at group `at`. */
const carriers = [
  { name: 'IPv4-mapped, RFC 4291', prefix: [0, 0, 0, 0, 0, 0xffff], at: 6 },
  { name: 'NAT64, RFC 6052', prefix: [0x64, 0xff9b, 0, 0, 0, 0], at: 6 },
  { name: '6to4, RFC 3056', prefix: [0x2002], at: 1 },
] as const

/** The eight groups; the URL parser knows every spelling, the dotted tail too, and writes one. */
function groupsOf(address: string): number[] {
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const numbers = (text = '') => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const [front, back] = [numbers(head), numbers(tail)]
  return tail === undefined ? front : [...front, ...Array(8 - front.length - back.length).fill(0), ...back]
}

function embedded(groups: readonly number[], at: number): string {
  return [groups[at] ?? 0, groups[at + 1] ?? 0].flatMap((group) => [group >> 8, group & 0xff]).join('.')
}
