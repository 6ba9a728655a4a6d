import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isPublicAddress } from '../../src/upstream/files/public-address.ts'

describe('not public', () => {
  test.each([
    ...['0.0.0.0', '0.255.255.255', '10.0.0.0', '10.255.255.255', '100.64.0.0', '100.127.255.255', '127.0.0.1'],
    ...['127.255.255.255', '168.63.129.16', '169.254.0.0', '169.254.169.254', '172.16.0.0', '172.31.255.255'],
    ...['192.0.0.0', '192.0.0.192', '192.0.2.1', '192.88.99.1', '192.168.0.0', '192.168.255.255', '198.18.0.0'],
    ...['198.19.255.255', '198.51.100.7', '203.0.113.7', '224.0.0.1', '239.255.255.255', '240.0.0.1'],
    '255.255.255.255',
  ])('IPv4 %s', (address) => expect(isPublicAddress(address)).toBe(false))

  test.each([
    ...['::', '::1', '0:0:0:0:0:0:0:1', '::ffff:10.0.0.1', '::ffff:a00:1', '::FFFF:127.0.0.1', '::ffff:0.0.0.0'],
    ...['0:0:0:0:0:ffff:169.254.169.254', '::10.0.0.1', '::8.8.8.8', '::ffff:0:10.0.0.1', '::ffff:0:8.8.8.8'],
    ...['64:ff9b::10.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b:1::8.8.8.8', '2002:a00:1::', '2002:7f00:1::1'],
    ...['2002:a9fe:a9fe::', '100::1', 'fc00::1', 'fd00:ec2::254', 'fe80::1', 'febf::1', 'fec0::1', 'ff02::1'],
    ...['2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2', '2001:10::1', '2001:20::1', '2001:db8::1', '3fff::1'],
    ...['5f00::1', '4000::1', 'fe80::1%eth0', '2606:4700::1111%1'],
  ])('IPv6 %s', (address) => expect(isPublicAddress(address)).toBe(false))

  test.each(['', 'localhost', '127.1', '0x7f000001', '2130706433', '0177.0.0.1', '[::1]', '8.8.8.8 ', '1.2.3', '::g'])(
    'what is no address: %j',
    (text) => expect(isPublicAddress(text)).toBe(false),
  )
})

describe('public', () => {
  test.each([
    ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255'],
    ...['128.0.0.0', '168.63.129.15', '169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0', '192.0.1.0'],
    ...['192.0.3.0', '192.167.255.255', '192.169.0.0', '198.17.255.255', '198.20.0.0', '223.255.255.255'],
    ...['2606:4700:4700::1111', '2001:4860:4860::8888', '2a00:1450::', '3ffe::1', '2001:200::1'],
    ...['::ffff:8.8.8.8', '64:ff9b::8.8.8.8', '2002:808:808::1'],
  ])('%s', (address) => expect(isPublicAddress(address)).toBe(true))
})

test('an IPv4 address is judged alike in every dress', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const hex = address.split('.').map((byte) => Number(byte).toString(16).padStart(2, '0'))
      const groups = `${hex[0]}${hex[1]}:${hex[2]}${hex[3]}`
      const dresses = [`::ffff:${address}`, `::ffff:${groups}`, `0:0:0:0:0:ffff:${groups}`, `64:ff9b::${address}`]
      const verdicts = [...dresses, `2002:${groups}::1`].map(isPublicAddress)
      expect(new Set(verdicts)).toEqual(new Set([isPublicAddress(address)]))
    }),
  )
})
