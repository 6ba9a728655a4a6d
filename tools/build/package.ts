import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { project, readableByAll, writeProgram } from './program.ts'
import { dist } from './single-file.ts'

// What `npm pack` puts into the package of npm: Node refuses to remove types from files below node_modules.
const program = join(dist, 'program')
writeProgram(program)
// npm packs files with the permissions that they have, also those that it adds itself.
readableByAll(program)
for (const name of ['package.json', 'README.md', 'LICENSE']) chmodSync(join(project, name), 0o644)
