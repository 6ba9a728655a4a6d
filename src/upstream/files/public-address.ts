import { BlockList, isIPv4, isIPv6 } from 'node:net'

/**
 * Checks whether a text is an IP address on the public internet. Texts that are not an address, addresses with a zone, and ranges that
 * IANA reserves for other purposes are not. IPv6 with an embedded IPv4 address is public if that is.
 */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !reserved.check(address, 'ipv4')
  if (!isIPv6(address) || address.includes('%')) return false
  const groups = groupsOf(address)
  const embedding = embeddings.find(({ prefix }) => prefix.every((group, index) => groups[index] === group))
  if (embedding) return isPublicAddress(embedded(groups, embedding.at))
  return unicast.check(address, 'ipv6') && !reserved.check(address, 'ipv6')
}

/** IPv4 ranges that are not public: IANA's special-purpose registry (RFC 6890 and its successors), multicast, reserved. */
const reservedIPv4 = [
  ['0.0.0.0', 8, 'this network: most systems connect to themselves'],
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

/** Reserved ranges inside global unicast; everything outside of it (::, ::1, fc00::/7, fe80::/10, ff00::/8 …) is not public anyway. */
const reservedIPv6 = [
  ['2001::', 23, 'protocol assignments, Teredo among them'],
  ['2001:db8::', 32, 'documentation'],
  ['3fff::', 20, 'documentation'],
] as const

const reserved = new BlockList()
for (const [net, bits] of reservedIPv4) reserved.addSubnet(net, bits, 'ipv4')
for (const [net, bits] of reservedIPv6) reserved.addSubnet(net, bits, 'ipv6')

const unicast = new BlockList()
unicast.addSubnet('2000::', 3, 'ipv6')

/** Prefixes, in groups of 16 bits, of addresses with an IPv4 address embedded at group `at`. */
const embeddings = [
  { name: 'IPv4-mapped, RFC 4291', prefix: [0, 0, 0, 0, 0, 0xffff], at: 6 },
  { name: 'NAT64, RFC 6052', prefix: [0x64, 0xff9b, 0, 0, 0, 0], at: 6 },
  { name: '6to4, RFC 3056', prefix: [0x2002], at: 1 },
] as const

/** Returns the eight groups. The URL parser normalizes every notation, the dotted one too. */
function groupsOf(address: string): number[] {
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const numbers = (text = '') => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const [front, back] = [numbers(head), numbers(tail)]
  return tail === undefined ? front : [...front, ...Array(8 - front.length - back.length).fill(0), ...back]
}

function embedded(groups: readonly number[], at: number): string {
  return [groups[at] ?? 0, groups[at + 1] ?? 0].flatMap((group) => [group >> 8, group & 0xff]).join('.')
}
