import { createServer } from 'node:net'
import type { Config } from '../../snapshot/config.ts'
import type { HttpClient } from '../../upstream/http/types.ts'
import { textUpTo } from '../../upstream/provider-request.ts'
import { type Finding, ok, problem } from './finding.ts'

/** Checks whether the addresses of the configuration can be listened at, or are by a router that runs. */
export async function checkPorts(
  { server, manage }: Pick<Config, 'server' | 'manage'>,
  client: HttpClient,
): Promise<Finding[]> {
  const places = [
    { setting: 'server.port', port: server.port },
    ...(manage.port === null ? [] : [{ setting: 'manage.port', port: manage.port }]),
  ]
  return await Promise.all(places.map((place) => checkPort({ ...place, host: server.host }, client)))
}

type Place = { setting: string; host: string; port: number }

async function checkPort({ setting, host, port }: Place, client: HttpClient): Promise<Finding> {
  const address = `${host}:${port}`
  if (port === 0) return ok('ports', `${setting} is 0: any free port`)
  const failure = await listenFailure(host, port)
  if (failure === undefined) return ok('ports', `${address} (${setting}) is free`)
  if (failure === 'EADDRINUSE') {
    if (await isRouter(host, port, client)) return ok('ports', `a router listens at ${address} (${setting})`)
    const fix = `stop that process, or choose another ${setting}`
    return problem('ports', `${address} (${setting}) is in use by another process`, fix)
  }
  if (failure === 'EACCES')
    return problem('ports', `listening at ${address} is not allowed`, `choose a ${setting} above 1023`)
  return problem(
    'ports',
    `${address} cannot be listened at (${failure})`,
    'set server.host to an address of this machine',
  )
}

/** Returns the code with which the system refuses to listen; undefined where it does not. */
function listenFailure(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}

/** Checks whether `GET /health` is answered as a router does. */
async function isRouter(host: string, port: number, client: HttpClient): Promise<boolean> {
  const own = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host
  const timeouts = { connectMs: maxMs, firstEventMs: maxMs, betweenEventsMs: maxMs, wholeMs: maxMs, totalMs: maxMs }
  const signal = AbortSignal.timeout(maxMs)
  const url = `http://${own}:${port}/health`
  try {
    const response = await client.send({ method: 'GET', url, headers: {}, timeouts, signal, provider: 'router' })
    const { text } = await textUpTo(response, maxBytes)
    return response.status === 200 && text === '{"status":"ok"}'
  } catch {
    return false
  }
}

const maxMs = 2_000
const maxBytes = 1_000
