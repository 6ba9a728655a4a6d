import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Parts } from './folder.ts'
import { productionPackages } from './packages.ts'
import { project, projectManifest } from './program.ts'
import { buildTime } from './time.ts'

/** Parts of a release by target; without targets, only the packages of npm. */
export type PartsOf = { readonly [target: string]: Parts }

type Component = {
  type: 'library' | 'application' | 'platform'
  name: string
  version: string
  purl: string
  'bom-ref': string
  licenses?: object[]
  properties?: object[]
}

/** Returns the bill of materials of a release in CycloneDX's format. */
export function billOfMaterials(parts: PartsOf): object {
  const { name, version, license } = projectManifest()
  const components = [...npmComponents(), ...goComponents(), ...Object.entries(parts).flatMap(componentsOf)]
  const seen = new Map(components.map((one) => [one['bom-ref'], one]))
  const all = [...seen.values()].sort((one, other) => (one['bom-ref'] < other['bom-ref'] ? -1 : 1))
  const id = createHash('sha256')
    .update(JSON.stringify([name, version, all]))
    .digest('hex')
  const itself = `pkg:npm/${name}@${version}`
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${id.slice(0, 8)}-${id.slice(8, 12)}-4${id.slice(13, 16)}-8${id.slice(17, 20)}-${id.slice(20, 32)}`,
    version: 1,
    metadata: {
      timestamp: new Date(buildTime() * 1_000).toISOString(),
      component: { type: 'application', name, version, purl: itself, 'bom-ref': itself, licenses: licensesOf(license) },
    },
    components: all,
    dependencies: [{ ref: itself, dependsOn: all.map((one) => one['bom-ref']) }],
  }
}

function npmComponents(): Component[] {
  return productionPackages().map(({ name, version, license }) => {
    const purl = `pkg:npm/${name.replace(/^@/, '%40')}@${version}`
    return { type: 'library', name, version, purl, 'bom-ref': purl, licenses: licensesOf(license) }
  })
}

function goComponents(): Component[] {
  const text = readFileSync(join(project, 'packaging/launcher/go.mod'), 'utf8')
  return [...text.matchAll(/^(?:require|\t)\s*(\S+) v(\S+)$/gm)].map(([, name = '', version = '']) => {
    const purl = `pkg:golang/${name}@v${version}`
    return { type: 'library', name, version: `v${version}`, purl, 'bom-ref': purl }
  })
}

function componentsOf([target, { node, debian }]: [string, Parts]): Component[] {
  const purl = `pkg:github/nodejs/node@v${node.version}`
  return [
    { type: 'platform', name: 'node', version: node.version, purl, 'bom-ref': purl, licenses: licensesOf('MIT') },
    ...debian.map(({ name, version }): Component => {
      const own = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${target.endsWith('arm64') ? 'arm64' : 'amd64'}`
      return { type: 'library', name, version, purl: own, 'bom-ref': own }
    }),
  ]
}

/** Names of a licence are ids of SPDX; what combines several is an expression. */
function licensesOf(license: string): object[] {
  if (/[ (]/.test(license)) return [{ expression: license }]
  return [
    { license: /^[A-Z0-9][\w.+-]*$/i.test(license) && license !== 'UNKNOWN' ? { id: license } : { name: license } },
  ]
}
