import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { entriesOf } from './folder.ts'
import { buildImage } from './image.ts'
import { licencesOf } from './licences.ts'
import { project, projectManifest, run } from './program.ts'
import { billOfMaterials, type PartsOf } from './sbom.ts'
import { buildSingleFile, dist } from './single-file.ts'
import { tarOf } from './tar.ts'
import { targets } from './targets.ts'
import { buildTime } from './time.ts'

/** Writes everything that a release consists of into dist/release. Targets whose parts npm lacks are left out, and named. */
const folder = join(dist, 'release')
const { name, version } = projectManifest()
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })

const parts: { [target: string]: PartsOf[string] } = {}
const missing: string[] = []
const made: string[] = []
for (const target of targets) {
  try {
    const file = await buildSingleFile(target, folder)
    parts[target.name] = file.parts
    made.push(file.path)
    if (target.debian) made.push((await buildImage(target, folder)).path)
  } catch (error) {
    missing.push(`${target.name}: ${(error as Error).message}`)
  }
}
run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: project })
made.push(join(folder, `${name}-${version}.tgz`), writeChart(), writeText('LICENCES.txt', allLicences()))
made.push(writeText(`${name}-${version}.cdx.json`, `${JSON.stringify(billOfMaterials(parts), null, 2)}\n`))
const sums = made.map((path) => `${createHash('sha256').update(readFileSync(path)).digest('hex')}  ${basename(path)}\n`)
made.push(writeText('SHA256SUMS', sums.sort().join('')))

for (const path of made) console.log(relative(project, path))
for (const reason of missing) console.error(`Left out: ${reason}`)

function writeChart(): string {
  const archive = tarOf(entriesOf(join(project, 'packaging/helm', name), `${name}/`), buildTime())
  const path = join(folder, `${name}-chart-${version}.tgz`)
  const bytes = gzipSync(archive, { level: 9 })
  // The system that it was made on.
  bytes[9] = 255
  writeFileSync(path, bytes)
  return path
}

function allLicences(): string {
  const [any] = Object.values(parts)
  return licencesOf({ debian: any?.debian ?? [], ...(any && { node: any.node }) })
}

function writeText(file: string, text: string): string {
  const path = join(folder, file)
  writeFileSync(path, text)
  return path
}
