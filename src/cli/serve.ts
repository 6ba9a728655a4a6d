import { parseArgs } from 'node:util'
import { formatProblem } from '../manifest/problem.ts'
import { openLog } from '../observe/log.ts'
import { type Router, StartRefused, startRouter } from '../router.ts'
import type { Out } from './store-command.ts'

/** What `inference-router serve --help` says. */
export const help = `The server.

  inference-router serve [--config FILE] [--port N]

  --config FILE   the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --port N        listen here instead of at server.port; 0 takes any free port

The first start makes the database, an organization and a key with full permissions, and prints the key once; with
INFERENCE_ROUTER_ADMIN_KEY set that one is the key, and is not printed.
SIGTERM and SIGINT refuse new calls, finish running ones for up to 30 seconds, settle all and exit; a second one exits at once.
LOG_LEVEL names the level of the log on standard error: debug, info (the default), warn, error, silent.
`

/** How long running calls may go on after the process was told to stop. */
const drainMs = 30_000

/** Serves until a signal comes. Returns the exit code. */
export async function run(args: string[], out: Out): Promise<number> {
  const options = readOptions(args)
  if (typeof options === 'string') {
    out.stderr(`${options}\n\n${help}`)
    return 2
  }
  let router: Router
  try {
    router = await startRouter({ ...options, env: process.env, log: openLog() })
  } catch (error) {
    if (error instanceof StartRefused) {
      for (const problem of error.problems) out.stderr(`${formatProblem(problem)}\n`)
    }
    out.stderr(`${explain(error)}\n`)
    return 1
  }
  const told = toldToStop()
  out.stdout(welcome(router))
  await told
  out.stderr('Stopping: no new calls; running ones may finish.\n')
  try {
    await router.stop(drainMs)
    return 0
  } catch (error) {
    out.stderr(`${(error as Error).message}\n`)
    return 1
  }
}

function readOptions(args: string[]): { configPath: string | undefined; port?: number } | string {
  try {
    const { values } = parseArgs({ args, options: { config: { type: 'string' }, port: { type: 'string' } } })
    const port = values.port === undefined ? undefined : Number(values.port)
    if (port !== undefined && !(Number.isInteger(port) && port >= 0 && port < 65_536)) {
      return `--port takes a number from 0 to 65535, not '${values.port}'.`
    }
    const configPath = values.config ?? process.env.INFERENCE_ROUTER_CONFIG
    return { configPath, ...(port !== undefined && { port }) }
  } catch (error) {
    return (error as Error).message
  }
}

function welcome({ url, manageUrl, firstKey }: Router): string {
  const manages = manageUrl === url ? '' : `The management API is at ${manageUrl}/v1/manage\n`
  const serves = `inference-router serves at ${url}/v1\n${manages}`
  if (firstKey === undefined) return serves
  const [told, inShell] =
    'variable' in firstKey
      ? [`Your first key is the one in ${firstKey.variable}.`, `$${firstKey.variable}`]
      : [`Your first key, shown only now:\n\n  ${firstKey.secret}`, firstKey.secret]
  return `${serves}
${told}

Try it; the demo provider needs no account:

  curl ${url}/v1/chat/completions \\
    -H "Authorization: Bearer ${inShell}" -H "Content-Type: application/json" \\
    -d '{"model": "demo/echo", "messages": [{"role": "user", "content": "Hello"}]}'

`
}

function explain(error: unknown): string {
  const { code, message, port, address } = error as NodeJS.ErrnoException & { port?: number; address?: string }
  if (code === 'EADDRINUSE') {
    return `${address}:${port} is taken by another process: stop that one, or choose another port with --port, server.port or manage.port.`
  }
  if (code === 'EACCES') return `Listening at ${address}:${port} is not allowed: choose a port above 1023.`
  return message
}

function toldToStop(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(1))
        resolve()
      })
    }
  })
}
