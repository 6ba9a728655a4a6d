import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { serverFlags } from '../../src/runtime/restart.ts'
import { loadConfig } from '../../src/snapshot/config.ts'
import { filesBelow, project, projectManifest } from '../../tools/build/program.ts'
import { billOfMaterials } from '../../tools/build/sbom.ts'
import { folderOf } from '../manifest/files.ts'

const packaging = join(project, 'packaging')
const read = (path: string) => readFileSync(join(packaging, path), 'utf8')
const { version } = projectManifest()

const compose = parse(read('compose/compose.yaml'))
const manifests = parseAllDocuments(read('kubernetes/inference-router.yaml')).map((one) => one.toJSON())
const ofKind = (kind: string) => manifests.find((one) => one.kind === kind)

test('every tag of the image is the version', () => {
  const images = [compose.services.router.image, ofKind('StatefulSet').spec.template.spec.containers[0].image]
  expect(images).toEqual(Array(2).fill(`inference-router:${version}`))
  expect(parse(read('helm/inference-router/Chart.yaml'))).toMatchObject({ version, appVersion: version })
})

test.each([
  ['compose', read('compose/router/config.yaml')],
  ['systemd', read('systemd/config.yaml')],
  ['Kubernetes', ofKind('ConfigMap').data['config.yaml']],
])('the configuration for %s is valid, and its database is on the volume', async (_, text) => {
  const folder = folderOf({ 'config.yaml': `${text}folders: {}\n` })
  const { config, problems } = await loadConfig(join(folder, 'config.yaml'), {})
  expect(problems).toEqual([])
  expect(config?.store.url).toMatch(/^sqlite:\/(?:data|var\/lib\/inference-router)\//)
})

test('compose mounts files that exist', () => {
  const mounted = Object.values(compose.services as Record<string, { volumes: string[] }>).flatMap(({ volumes }) =>
    volumes.map((one) => one.split(':')[0] ?? '').filter((one) => one.startsWith('.')),
  )
  expect(mounted.length).toBeGreaterThan(4)
  expect(mounted.filter((path) => !existsSync(resolve(packaging, 'compose', path)))).toEqual([])
})

test('containers have no rights, and a root that is read-only', () => {
  expect(compose.services.router).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
  const { securityContext, containers } = ofKind('StatefulSet').spec.template.spec
  expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10_001, fsGroup: 10_001 })
  expect(containers[0].securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false })
})

test('ports outside of compose are on this machine only', () => {
  const ports = Object.values(compose.services as Record<string, { ports?: string[] }>).flatMap(
    ({ ports = [] }) => ports,
  )
  expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([])
})

test('the launcher starts Node with the flags of a server', () => {
  const launcher = read('launcher/main.go')
  for (const flag of serverFlags) expect(launcher).toContain(flag.replace(/(?<=pool-size=)\d+/, '%d'))
})

test('no file for installing contains a secret', () => {
  const texts = filesBelow(packaging).map((path) => read(path))
  expect(texts.filter((text) => /\b(?:sk-|ir-)[\w-]{16,}|BEGIN [A-Z ]*PRIVATE KEY/.test(text))).toEqual([])
})

test('the bill of materials names every package of the lock file, Node and the C library', () => {
  const debian = [{ name: 'libstdc++6', version: '12.2.0-14', copyright: Buffer.alloc(0) }]
  const bill = billOfMaterials({ 'linux-x64': { node: { version: '24.21.0', licence: Buffer.alloc(0) }, debian } }) as {
    components: { purl: string }[]
  }
  const urls = bill.components.map(({ purl }) => purl)
  expect(urls).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^pkg:npm\/better-sqlite3@/),
      expect.stringMatching(/^pkg:npm\/%40fastify\/busboy@/),
      expect.stringMatching(/^pkg:golang\/github\.com\/klauspost\/compress@v/),
      'pkg:github/nodejs/node@v24.21.0',
      'pkg:deb/debian/libstdc%2B%2B6@12.2.0-14?arch=amd64',
    ]),
  )
  expect(urls.filter((url) => url.includes('vitest'))).toEqual([])
  expect(new Set(urls).size).toBe(urls.length)
})

const helm = spawnSync('helm', ['version']).status === 0
test.skipIf(!helm)('helm accepts the chart (skipped without helm)', () => {
  const { status, stdout } = spawnSync('helm', ['lint', '--strict', join(packaging, 'helm/inference-router')], {
    encoding: 'utf8',
  })
  expect(stdout).toContain('0 chart(s) failed')
  expect(status).toBe(0)
})

const promtool = spawnSync('promtool', ['--version']).status === 0
test.skipIf(!promtool)('promtool accepts the configuration of Prometheus (skipped without promtool)', () => {
  const folder = folderOf({
    'prometheus.yml': read('compose/prometheus/prometheus.yml'),
    'rules.yaml': readFileSync(join(project, 'docs/prometheus-rules.yaml'), 'utf8'),
  })
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'config', join(folder, 'prometheus.yml')], {
    encoding: 'utf8',
  })
  expect(`${stdout}${stderr}`).toContain('SUCCESS')
  expect(status).toBe(0)
})
