import { type TestRouter, testKey } from '../helpers/router.ts'

/** The router's reply; `body` is its JSON, undefined when there is none. */
export type ManageReply = { status: number; headers: Headers; text: string; body: Record<string, unknown> }

/** The management API of a router, called with its first key by default. */
export function administration(router: Pick<TestRouter, 'manageUrl'>) {
  const ask = async (
    method: string,
    path: string,
    body?: unknown,
    secret = testKey,
    headers: Record<string, string> = {},
  ): Promise<ManageReply> => {
    const response = await fetch(`${router.manageUrl}/v1/manage${path}`, {
      method,
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: text === '' ? undefined : JSON.parse(text),
    }
  }
  return {
    ask,
    get: (path: string, secret?: string) => ask('GET', path, undefined, secret),
    post: (path: string, body?: unknown, secret?: string, headers?: Record<string, string>) =>
      ask('POST', path, body, secret, headers),
    put: (path: string, body?: unknown, secret?: string) => ask('PUT', path, body, secret),
    delete: (path: string, secret?: string) => ask('DELETE', path, undefined, secret),
    /** A new key: its id and its secret. */
    async newKey(facts: object = {}, secret?: string): Promise<{ id: string; secret: string }> {
      const { status, text, body } = await ask('POST', '/apikey', { name: 'a key', ...facts }, secret)
      if (status !== 201) throw new Error(`${status} ${text}`)
      return { id: String(body.api_key_id), secret: String(body.api_key) }
    },
  }
}
