import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { serverFlags, serverVariables } from '../../src/runtime/restart.ts'
import { routerFolder, testKey, testRouter } from './router.ts'

// Starts and stops routers of two threads: the next starts find compiled code, and what was found out about files. Node keeps the
// code for each state of V8's flags apart: the threads of a process that serves have others than those of a router in this process.
const router = await testRouter({ threads: 2 })
const { folder, configPath } = routerFolder({ threads: 2 })
const main = join(import.meta.dirname, '../../src/start.js')
const child = spawn(process.execPath, [...serverFlags, main, 'serve', '--config', configPath, '--takeover'], {
  env: { ...process.env, ...serverVariables, INFERENCE_ROUTER_ADMIN_KEY: testKey, LOG_LEVEL: 'silent' },
  stdio: ['ignore', 'pipe', 'ignore'],
})
await Promise.all([once(child.stdout, 'data'), router.call('/v1/models').then((response) => response.text())])
await router.end()
// What is kept is written as the process ends.
child.kill()
await once(child, 'exit')
rmSync(folder, { recursive: true })
process.exit()
