import { expect, test } from 'vitest'
import type { AwsSigV4 } from '../../src/manifest/provider.ts'
import { signAws } from '../../src/upstream/auth/aws-signature.ts'
import { published } from './aws-published.ts'
import { expectedAuthorization } from './aws-verify.ts'

const auth: AwsSigV4 = {
  scheme: 'aws-sigv4',
  service: 'service',
  region: 'us-east-1',
  accessKey: 'AKIDEXAMPLE',
  secretKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
}
const now = Date.UTC(2015, 7, 30, 12, 36)

test.each(published)('$name is signed as AWS publishes it', async ({ target, sessionToken, signature, ...request }) => {
  const signing = { ...auth, ...(sessionToken !== undefined && { sessionToken }) }
  const headers = await signAws(signing, { ...request, url: `https://example.amazonaws.com${target}` }, now)
  const names = [
    'host',
    'x-amz-date',
    ...Object.keys(request.headers),
    ...(sessionToken ? ['x-amz-security-token'] : []),
  ]
  expect(headers.authorization).toBe(
    `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, ` +
      `SignedHeaders=${names.sort().join(';')}, Signature=${signature}`,
  )
  expect(headers['x-amz-date']).toBe('20150830T123600Z')
  expect(headers['x-amz-security-token']).toBe(sessionToken)
})

test.each([
  'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  'arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-2-lite-v1:0',
  'a model/with (everything)!*~\u00e4',
])('a model id in the path, %s, is signed as a verifier sees it on the wire', async (model) => {
  const path = `/model/${encodeURIComponent(model)}/converse`
  const headers = { 'content-type': 'application/json' }
  const body = '{"messages":[]}'
  const request = { method: 'POST', url: `https://bedrock-runtime.us-east-1.amazonaws.com${path}`, headers, body }
  const signed = await signAws({ ...auth, service: 'bedrock' }, request, now)
  const received = { ...headers, ...signed, host: 'bedrock-runtime.us-east-1.amazonaws.com' }
  expect(signed.authorization).toBe(
    expectedAuthorization({ method: 'POST', target: path, headers: received, body }, auth.secretKey),
  )
})
