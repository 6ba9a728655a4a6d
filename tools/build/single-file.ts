import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { constants, zstdCompressSync } from 'node:zlib'
import { entriesOf, type Parts, writeFolder } from './folder.ts'
import { project, projectManifest, run } from './program.ts'
import { tarOf } from './tar.ts'
import type { Target } from './targets.ts'
import { buildTime } from './time.ts'

/** The folder that builds are written to. */
export const dist = join(project, 'dist')

/** A build that is one file, and what it is made of. */
export type SingleFile = { path: string; parts: Parts }

/** Writes the program for a target as one file: a static launcher that contains Node and everything else. */
export async function buildSingleFile(target: Target, to = dist): Promise<SingleFile> {
  const folder = mkdtempSync(join(tmpdir(), 'inference-router-build-'))
  try {
    const parts = await writeFolder(join(folder, 'contents'), target)
    const archive = tarOf(entriesOf(join(folder, 'contents')), buildTime())
    const build = createHash('sha256').update(archive).digest('hex').slice(0, 16)
    const path = join(to, fileName(target))
    mkdirSync(to, { recursive: true })
    buildLauncher(join(folder, 'launcher'), { target, build, archive: compressed(archive), path })
    return { path, parts }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function fileName({ name, go }: Target): string {
  const { name: program, version } = projectManifest()
  return `${program}-${version}-${name}${go.os === 'windows' ? '.exe' : ''}`
}

/** Compresses as well as zstd can within a window that a decoder keeps in memory. */
function compressed(archive: Buffer): Buffer {
  return zstdCompressSync(archive, {
    params: {
      [constants.ZSTD_c_compressionLevel]: 19,
      [constants.ZSTD_c_windowLog]: 27,
      [constants.ZSTD_c_enableLongDistanceMatching]: 1,
    },
  })
}

function buildLauncher(
  folder: string,
  { target, build, archive, path }: { target: Target; build: string; archive: Buffer; path: string },
): void {
  cpSync(join(project, 'packaging/launcher'), folder, { recursive: true })
  writeFileSync(join(folder, 'archive.tar.zst'), archive)
  run(
    'go',
    ['build', '-trimpath', '-tags=archive', `-ldflags=-s -w -buildid= -X main.build=${build}`, '-o', path, '.'],
    {
      cwd: folder,
      env: {
        ...process.env,
        CGO_ENABLED: '0',
        GOFLAGS: '-buildvcs=false',
        GOWORK: 'off',
        GOOS: target.go.os,
        GOARCH: target.go.arch,
        GOAMD64: 'v1',
      },
    },
  )
}
