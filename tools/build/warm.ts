import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Maximum time of a start. Milliseconds. */
const maxMs = 120_000

/**
 * Starts a program once, so that its cache has everything that it finds out about the shipped files. Compiled code is not part of it: it
 * differs from run to run, and a build must not.
 */
export async function warmCache(program: string, cache: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'inference-router-warm-'))
  try {
    const server = spawn(process.execPath, [join(program, 'src/start.js'), 'serve', '--port', '0'], {
      cwd: folder,
      env: { INFERENCE_ROUTER_CACHE: cache, NODE_COMPILE_CACHE: join(folder, 'code'), LOG_FORMAT: 'json' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let printed = ''
    let isServing = false
    const timeout = setTimeout(() => server.kill('SIGKILL'), maxMs)
    for (const stream of [server.stdout, server.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        printed += text
        if (isServing || !/serves at http/.test(printed)) return
        isServing = true
        server.kill('SIGTERM')
      })
    }
    const [code] = await once(server, 'close')
    clearTimeout(timeout)
    if (code !== 0) throw new Error(`the program did not start: ${printed}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
