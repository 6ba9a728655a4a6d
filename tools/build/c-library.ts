import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from './program.ts'

/** Debian's packages of the libraries that Node needs. */
const packages = ['libc6', 'libstdc++6', 'libgcc-s1']

/** The libraries themselves; the dynamic loader has another name on each architecture. */
const libraries = /^(?:ld-linux-.*\.so\.\d|lib(?:c|m|dl|pthread|stdc\+\+|gcc_s)\.so\.\d)$/

/** Libraries by their file names, and the Debian packages that they are from. */
export type CLibrary = {
  files: { name: string; bytes: Buffer }[]
  packages: { name: string; version: string; copyright: Buffer }[]
}

/** Fetches the C library and that of C++ for an architecture, by its Debian name. The system's own packages stay as they are. */
export function fetchCLibrary(architecture: string): CLibrary {
  const folder = mkdtempSync(join(tmpdir(), 'inference-router-debian-'))
  try {
    const settings = privateState(folder, architecture)
    run('apt-get', [...settings, '--quiet', 'update'])
    run('apt-get', [...settings, '--quiet', 'download', ...packages], { cwd: folder })
    const archives = readdirSync(folder).filter((name) => name.endsWith('.deb'))
    const root = join(folder, 'root')
    for (const archive of archives) run('dpkg-deb', ['--extract', join(folder, archive), root])
    return {
      files: librariesIn(root),
      packages: packages.map((name) => {
        const archive = archives.find((one) => one.startsWith(`${name}_`)) ?? ''
        const version = run('dpkg-deb', ['--field', join(folder, archive), 'Version']).trim()
        return { name, version, copyright: copyrightOf(name, root) }
      }),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns options by which apt knows one architecture only, and keeps what it finds out in a folder. */
function privateState(folder: string, architecture: string): string[] {
  for (const path of ['state/lists/partial', 'cache/archives/partial'])
    mkdirSync(join(folder, path), { recursive: true })
  return Object.entries({
    'Dir::State': join(folder, 'state'),
    'Dir::State::status': '/dev/null',
    'Dir::Cache': join(folder, 'cache'),
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': '',
    'Acquire::Languages': 'none',
  }).map(([name, value]) => `--option=${name}=${value}`)
}

function librariesIn(root: string): CLibrary['files'] {
  const folders = ['lib', 'usr/lib'].flatMap((folder) => {
    const path = join(root, folder)
    return existsSync(path)
      ? readdirSync(path)
          .filter((one) => one.endsWith('-linux-gnu'))
          .map((one) => join(path, one))
      : []
  })
  const files = folders.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => libraries.test(name))
      .map((name) => ({ name, bytes: readFileSync(join(folder, name)) })),
  )
  if (files.length !== 7) throw new Error(`expected 7 libraries: ${files.map(({ name }) => name).join(', ')}`)
  return files.sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** The licence of a package may be a link to that of another one. */
function copyrightOf(name: string, root: string): Buffer {
  const place = [name, 'gcc-12-base', 'gcc-14-base'].map((one) => join(root, 'usr/share/doc', one, 'copyright'))
  const found = place.find((path) => existsSync(path))
  return found === undefined
    ? Buffer.from(`The licence of ${name}: GPL-3.0 with the GCC Runtime Library Exception.\n`)
    : readFileSync(found)
}
