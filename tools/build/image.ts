import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { nameLoader } from './elf.ts'
import { entriesOf, type Parts, writeFolder } from './folder.ts'
import { projectManifest } from './program.ts'
import { dist } from './single-file.ts'
import { type Entry, tarOf } from './tar.ts'
import type { Target } from './targets.ts'
import { buildTime } from './time.ts'

/** The user of the image: no user of a host has this id. */
const user = 10_001

/** A container image, what it is made of, and the digest of its manifest. */
export type Image = { path: string; parts: Parts; digest: string }

/** Writes a container image for a target of Linux as an archive in OCI's layout, which `docker load` takes as well. Needs no daemon. */
export async function buildImage(target: Target, to = dist): Promise<Image> {
  const folder = mkdtempSync(join(tmpdir(), 'inference-router-image-'))
  try {
    const parts = await writeFolder(folder, target)
    const { name, version } = projectManifest()
    const suffix = target.name === 'linux-x64' ? '' : `-${target.name}`
    const path = join(to, `${name}-${version}${suffix}.oci.tar`)
    const { archive, digest } = imageArchive(layersOf(folder), target)
    mkdirSync(to, { recursive: true })
    writeFileSync(path, archive)
    return { path, parts, digest }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns the layers: what an update of Node changes, and what every update changes. */
function layersOf(folder: string): Entry[][] {
  const text = (path: string, bytes: string) => ({ path, mode: 0o644, bytes: Buffer.from(bytes) })
  const system: Entry[] = [
    { path: 'app/', mode: 0o755 },
    { path: 'data/', mode: 0o700, owner: user },
    { path: 'etc/', mode: 0o755 },
    text('etc/group', `root:x:0:\nrouter:x:${user}:\n`),
    text('etc/nsswitch.conf', 'hosts: files dns\n'),
    text('etc/passwd', `root:x:0:0:root:/:/sbin/nologin\nrouter:x:${user}:${user}:router:/data:/sbin/nologin\n`),
    { path: 'tmp/', mode: 0o1777 },
  ]
  const isOfNode = ({ path }: Entry) => path.startsWith('app/node/')
  const all = entriesOf(folder, 'app/').filter(({ path }) => path !== 'app/')
  const node = all.filter(isOfNode)
  const program = node.find(({ path }) => path === 'app/node/node')
  const loader = node.find(({ path }) => path.includes('/ld-linux-'))
  if (!program?.bytes || !loader) throw new Error('the image needs Node and its dynamic loader')
  nameLoader(program.bytes as Buffer, `/${loader.path}`)
  return [
    [...system, ...node],
    [{ path: 'app/', mode: 0o755 }, ...all.filter((entry) => !isOfNode(entry))],
  ]
}

type Blob = { mediaType: string; digest: string; size: number; bytes: Buffer }

/** Returns the archive of an image with these layers, and the digest of its manifest. Equal entries and times make equal bytes. */
export function imageArchive(layers: readonly Entry[][], target: Target): { archive: Buffer; digest: string } {
  const { name, version } = projectManifest()
  const archives = layers.map((entries) => tarOf(entries, buildTime()))
  const blobs = archives.map((bytes) => blobOf('application/vnd.oci.image.layer.v1.tar+gzip', compressed(bytes)))
  const config = jsonBlob('application/vnd.oci.image.config.v1+json', configOf(archives, target))
  const manifest = jsonBlob('application/vnd.oci.image.manifest.v1+json', {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: descriptorOf(config),
    layers: blobs.map(descriptorOf),
    annotations: annotations(),
  })
  const platform = { architecture: target.go.arch, os: 'linux' }
  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [{ ...descriptorOf(manifest), platform, annotations: { 'org.opencontainers.image.ref.name': version } }],
  }
  const paths = (all: readonly Blob[]) => all.map(({ digest }) => `blobs/sha256/${digest.slice('sha256:'.length)}`)
  // For engines that know only Docker's own archives.
  const forDocker = [{ Config: paths([config])[0], RepoTags: [`${name}:${version}`], Layers: paths(blobs) }]
  const file = (path: string, value: unknown) => ({ path, mode: 0o644, bytes: Buffer.from(JSON.stringify(value)) })
  const all = [...blobs, config, manifest]
  const archive = tarOf(
    [
      { path: 'blobs/', mode: 0o755 },
      { path: 'blobs/sha256/', mode: 0o755 },
      ...paths(all).map((path, index) => ({ path, mode: 0o644, bytes: all[index]?.bytes ?? Buffer.alloc(0) })),
      file('index.json', index),
      file('manifest.json', forDocker),
      file('oci-layout', { imageLayoutVersion: '1.0.0' }),
    ],
    buildTime(),
  )
  return { archive, digest: manifest.digest }
}

function configOf(archives: readonly Buffer[], { go }: Target): object {
  const created = createdAt()
  return {
    created,
    architecture: go.arch,
    os: 'linux',
    config: {
      User: `${user}:${user}`,
      ExposedPorts: { '8787/tcp': {} },
      Env: [
        'PATH=/app/node',
        'HOME=/data',
        'INFERENCE_ROUTER_CACHE=/app/cache',
        'INFERENCE_ROUTER_HOST=0.0.0.0',
        'LOG_FORMAT=json',
      ],
      Entrypoint: ['/app/node/node', '/app/program/src/start.js'],
      Cmd: ['serve'],
      Volumes: { '/data': {} },
      WorkingDir: '/data',
      StopSignal: 'SIGTERM',
      Labels: annotations(),
    },
    rootfs: { type: 'layers', diff_ids: archives.map(digestOf) },
    history: archives.map(() => ({ created, created_by: 'npm run build:image' })),
  }
}

function annotations(): { [name: string]: string } {
  const { name, version, description, license } = projectManifest() as ReturnType<typeof projectManifest> & {
    description: string
  }
  return {
    'org.opencontainers.image.created': createdAt(),
    'org.opencontainers.image.description': description,
    'org.opencontainers.image.licenses': license,
    'org.opencontainers.image.title': name,
    'org.opencontainers.image.version': version,
  }
}

function createdAt(): string {
  return new Date(buildTime() * 1_000).toISOString().replace('.000Z', 'Z')
}

function compressed(bytes: Buffer): Buffer {
  const made = gzipSync(bytes, { level: 9 })
  // The system that it was made on, which nobody reads.
  made[9] = 255
  return made
}

function jsonBlob(mediaType: string, value: object): Blob {
  return blobOf(mediaType, Buffer.from(JSON.stringify(value)))
}

function blobOf(mediaType: string, bytes: Buffer): Blob {
  return { mediaType, digest: digestOf(bytes), size: bytes.length, bytes }
}

function descriptorOf({ mediaType, digest, size }: Blob): Omit<Blob, 'bytes'> {
  return { mediaType, digest, size }
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}
