import { expect, test, vi } from 'vitest'
import { signAws } from '../../src/upstream/auth/aws-signature.ts'
import { readAwsEventStream } from '../../src/wire/aws-event-stream.ts'

vi.mock('aws4fetch', () => {
  throw new Error("Cannot find package 'aws4fetch'")
})
vi.mock('@smithy/eventstream-codec', () => {
  throw new Error("Cannot find package '@smithy/eventstream-codec'")
})

test('an optional package that is not there is named in the error', async () => {
  const auth = { scheme: 'aws-sigv4', service: 'x', region: 'y', accessKey: 'a', secretKey: 'b' } as const
  const signed = signAws(auth, { method: 'POST', url: 'https://acme.test/', headers: {}, body: '' }, 0)
  await expect(signed).rejects.toMatchObject({ status: 502, message: expect.stringContaining('package aws4fetch') })
  await expect(readAwsEventStream()).rejects.toMatchObject({
    status: 502,
    message: expect.stringContaining('package @smithy/eventstream-codec'),
  })
})
