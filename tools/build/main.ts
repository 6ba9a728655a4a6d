import { statSync } from 'node:fs'
import { relative } from 'node:path'
import { parseArgs } from 'node:util'
import { project } from './program.ts'
import { buildSingleFile } from './single-file.ts'
import { targetNamed, targets } from './targets.ts'

const usage = `Writes the program as one file for each target into dist/.

  npm run build -- [--target TARGET]...

  --target TARGET   ${targets.map(({ name }) => name).join(', ')}; all of them with 'all'; else this system

It needs Go, and for Linux also apt-get and dpkg-deb.
`

const { values } = parseArgs({
  options: { target: { type: 'string', multiple: true }, help: { type: 'boolean' } },
})
if (values.help) {
  process.stdout.write(usage)
} else {
  const named = values.target ?? [`${process.platform}-${process.arch}`]
  for (const target of named.includes('all') ? targets : named.map(targetNamed)) {
    const { path } = await buildSingleFile(target)
    console.log(`${relative(project, path)}  ${(statSync(path).size / 1e6).toFixed(1)} MB`)
  }
}
