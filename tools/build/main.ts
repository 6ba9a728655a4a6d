import { statSync } from 'node:fs'
import { relative } from 'node:path'
import { parseArgs } from 'node:util'
import { buildImage } from './image.ts'
import { project } from './program.ts'
import { buildSingleFile } from './single-file.ts'
import { targetNamed, targets } from './targets.ts'

const usage = `Writes the program into dist/, as one file for each target or as container images.

  npm run build -- [--target TARGET]...
  npm run build:image -- [--target TARGET]...

  --target TARGET   ${targets.map(({ name }) => name).join(', ')}, or all;
                    without it this system, and linux-x64 for images

A single file needs Go. Both need apt-get and dpkg-deb for targets of Linux.
`

const { values } = parseArgs({
  options: {
    target: { type: 'string', multiple: true },
    image: { type: 'boolean' },
    help: { type: 'boolean' },
  },
})
if (values.help) {
  process.stdout.write(usage)
} else {
  await build(values.target ?? [values.image ? 'linux-x64' : `${process.platform}-${process.arch}`]).catch((error) => {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  })
}

async function build(names: readonly string[]): Promise<void> {
  const possible = values.image ? targets.filter(({ debian }) => debian) : targets
  for (const target of names.includes('all') ? possible : names.map((name) => targetNamed(name, possible))) {
    const built = values.image ? await buildImage(target) : await buildSingleFile(target)
    const digest = 'digest' in built ? `  ${built.digest}` : ''
    console.log(`${relative(project, built.path)}  ${(statSync(built.path).size / 1e6).toFixed(1)} MB${digest}`)
  }
}
