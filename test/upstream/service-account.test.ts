import { createPrivateKey, createPublicKey, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import { signAssertion, signRs256 } from '../../src/upstream/auth/service-account.ts'
import { rfc7515Key } from './rfc7515-key.ts'

const key = createPrivateKey({ key: rfc7515Key, format: 'jwk' })

test('RS256 signs the example of RFC 7515, appendix A.2, as it is published there', () => {
  const header = 'eyJhbGciOiJSUzI1NiJ9'
  const payload = 'eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ'
  const signature =
    'cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t' +
    '1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12j' +
    'zDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQ' +
    'Ge77Rw'
  expect(signRs256(`${header}.${payload}`, key)).toBe(`${header}.${payload}.${signature}`)
})

const documented = {
  email: '761326798069-r5mljlln1rd4lrbhg75efgigp36m78j5@developer.gserviceaccount.com',
  tokenUrl: 'https://accounts.google.com/o/oauth2/token',
  key,
}

test("header and claims are encoded as in the example of Google's documentation", () => {
  // "Using OAuth 2.0 for Server to Server Applications", "Forming the JWT claim set", in its edition of 2012.
  const jwt = signAssertion(documented, 'https://www.googleapis.com/auth/prediction', 1_328_550_785)
  const [header, claims, signature = ''] = jwt.split('.')
  expect(header).toBe('eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9')
  expect(claims).toBe(
    'eyJpc3MiOiI3NjEzMjY3OTgwNjktcjVtbGpsbG4xcmQ0bHJiaGc3NWVmZ2lncDM2bTc4ajVAZGV2ZWxvcGVyLmdzZXJ2aWNlYWNjb3VudC5jb20i' +
      'LCJzY29wZSI6Imh0dHBzOi8vd3d3Lmdvb2dsZWFwaXMuY29tL2F1dGgvcHJlZGljdGlvbiIsImF1ZCI6Imh0dHBzOi8vYWNjb3VudHMuZ29vZ2xl' +
      'LmNvbS9vL29hdXRoMi90b2tlbiIsImV4cCI6MTMyODU1NDM4NSwiaWF0IjoxMzI4NTUwNzg1fQ',
  )
  const input = Buffer.from(`${header}.${claims}`)
  expect(verify('RSA-SHA256', input, createPublicKey(key), Buffer.from(signature, 'base64url'))).toBe(true)
})

test('the id of the key is in the header, where the key file has one', () => {
  const [header = ''] = signAssertion({ ...documented, keyId: 'k1' }, 'x', 1).split('.')
  expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'k1' })
})
