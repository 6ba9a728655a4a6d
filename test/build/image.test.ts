import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { imageArchive } from '../../tools/build/image.ts'
import { targets } from '../../tools/build/targets.ts'

const layers = () => [
  [{ path: 'data/', mode: 0o700, owner: 10_001 }],
  [{ path: 'app/program', mode: 0o755, bytes: Buffer.from('one') }],
]
const [target] = targets
if (!target) throw new Error('there are no targets')

function unpacked(archive: Buffer) {
  const folder = mkdtempSync(join(tmpdir(), 'image-'))
  execFileSync('tar', ['-xf', '-', '-C', folder], { input: archive })
  const json = (path: string) => JSON.parse(readFileSync(join(folder, path), 'utf8'))
  const blob = (digest: string) => readFileSync(join(folder, 'blobs/sha256', digest.replace('sha256:', '')))
  return { json, blob }
}

const digestOf = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

test('every descriptor has the size and digest of its blob, up to the layers', () => {
  const { archive, digest } = imageArchive(layers(), target)
  const { json, blob } = unpacked(archive)
  const [described] = json('index.json').manifests
  expect(described.digest).toBe(digest)
  const manifest = JSON.parse(blob(digest).toString())
  for (const one of [described, manifest.config, ...manifest.layers]) {
    expect(one).toMatchObject({ size: blob(one.digest).length, digest: digestOf(blob(one.digest)) })
  }
  const { rootfs } = JSON.parse(blob(manifest.config.digest).toString())
  const layerDigests = manifest.layers.map((one: { digest: string }) => digestOf(gunzipSync(blob(one.digest))))
  expect(rootfs.diff_ids).toEqual(layerDigests)
  expect(layerDigests).toHaveLength(2)
})

test('the image runs as a user without rights, with one volume', () => {
  const { json, blob } = unpacked(imageArchive(layers(), target).archive)
  const manifest = JSON.parse(blob(json('index.json').manifests[0].digest).toString())
  const { config, architecture } = JSON.parse(blob(manifest.config.digest).toString())
  expect(config).toMatchObject({ User: '10001:10001', Volumes: { '/data': {} }, WorkingDir: '/data' })
  expect(config.Env.filter((one: string) => /KEY|SECRET|TOKEN/i.test(one))).toEqual([])
  expect(architecture).toBe('amd64')
})

test('two images of the same files are equal', () => {
  expect(imageArchive(layers(), target).archive.equals(imageArchive(layers(), target).archive)).toBe(true)
})
