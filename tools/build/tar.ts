/** A file, a folder (its path ends with a slash) or a symbolic link of an archive. */
export type Entry = { path: string; mode: number; bytes?: Uint8Array; link?: string; owner?: number }

const blockSize = 512

/** Returns a tar archive (POSIX ustar) whose bytes depend on nothing but its entries and the time, in seconds. */
export function tarOf(entries: readonly Entry[], time: number): Buffer {
  const blocks = entries.flatMap((entry) => {
    const bytes = entry.bytes ?? new Uint8Array()
    const padding = Buffer.alloc((blockSize - (bytes.length % blockSize)) % blockSize)
    return [headerOf(entry, time), bytes, padding]
  })
  return Buffer.concat([...blocks, Buffer.alloc(2 * blockSize)])
}

function headerOf({ path, mode, bytes, link, owner = 0 }: Entry, time: number): Buffer {
  const header = Buffer.alloc(blockSize)
  const text = (at: number, value: string) => header.write(value, at, 'utf8')
  const octal = (at: number, size: number, value: number) => text(at, value.toString(8).padStart(size - 1, '0'))
  const [prefix, name] = split(path)
  text(0, name)
  octal(100, 8, mode)
  octal(108, 8, owner)
  octal(116, 8, owner)
  octal(124, 12, bytes?.length ?? 0)
  octal(136, 12, time)
  text(148, '        ')
  text(156, link !== undefined ? '2' : path.endsWith('/') ? '5' : '0')
  text(157, link ?? '')
  text(257, 'ustar\u000000')
  text(345, prefix)
  octal(
    148,
    7,
    header.reduce((sum, byte) => sum + byte, 0),
  )
  header[154] = 0
  return header
}

/** Splits a path into a prefix of at most 155 bytes and a name of at most 100, at a slash. */
function split(path: string): [prefix: string, name: string] {
  if (Buffer.byteLength(path) <= 100) return ['', path]
  for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)]
    if (name && Buffer.byteLength(prefix) <= 155 && Buffer.byteLength(name) <= 100) return [prefix, name]
  }
  throw new Error(`the path is too long for a tar archive: ${path}`)
}
