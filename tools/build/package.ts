import { join } from 'node:path'
import { writeProgram } from './program.ts'
import { dist } from './single-file.ts'

// What `npm pack` puts into the package of npm: Node refuses to remove types from files below node_modules.
writeProgram(join(dist, 'program'))
