/** Types of program headers and dynamic entries of the ELF format. */
const types = { load: 1, dynamic: 2, interpreter: 3, null: 0, runPath: 29, stringTable: 5 } as const

/** Bytes for the path of the dynamic loader, at the end of a portable program: as many as Linux takes. */
export const maxLoaderPath = 4_096

/**
 * Returns a 64-bit ELF program that runs with the C library beside it, wherever that is: in `libraries`, relative to its own folder. Linux
 * takes the path of the dynamic loader from the last bytes of the file, where whoever unpacks it writes the path that is right there.
 * Symbols for debuggers are left out, a seventh of Node.
 */
export function portable(program: Buffer, libraries: string): Buffer {
  const headers = programHeaders(program)
  const end = Math.max(...headers.filter(({ type }) => type === types.load).map(({ offset, size }) => offset + size))
  const made = Buffer.concat([program.subarray(0, end), Buffer.alloc(maxLoaderPath)])
  // No section headers, which were behind the last segment.
  made.fill(0, 0x28, 0x30)
  made.fill(0, 0x3c, 0x40)
  const interpreter = headers.find(({ type }) => type === types.interpreter)
  const dynamic = headers.find(({ type }) => type === types.dynamic)
  if (!interpreter || !dynamic) throw new Error('the program has no dynamic loader')
  made.writeBigUInt64LE(BigInt(end), interpreter.at + 0x08)
  made.writeBigUInt64LE(BigInt(maxLoaderPath), interpreter.at + 0x20)
  // The former path of the loader is in memory, and of no use there.
  const runPath = `$ORIGIN/${libraries}\0`
  if (runPath.length > interpreter.size) throw new Error(`the path is too long: ${libraries}`)
  made.fill(0, interpreter.offset, interpreter.offset + interpreter.size)
  made.write(runPath, interpreter.offset, 'latin1')
  addRunPath(made, dynamic, interpreter.address)
  return made
}

/** Writes the path of the dynamic loader into a portable program. */
export function nameLoader(program: Buffer, path: string): void {
  if (path.length >= maxLoaderPath) throw new Error(`the path is too long: ${path}`)
  program.write(`${path}\0`, program.length - maxLoaderPath)
}

type ProgramHeader = { at: number; type: number; offset: number; address: bigint; size: number }

function programHeaders(program: Buffer): ProgramHeader[] {
  const is64BitLittleEndian = program.readUInt32LE(0) === 0x464c457f && program.readUInt16LE(4) === 0x0102
  if (!is64BitLittleEndian) throw new Error('the program is not a 64-bit ELF file')
  const first = Number(program.readBigUInt64LE(0x20))
  return Array.from({ length: program.readUInt16LE(0x38) }, (_, index) => {
    const at = first + index * program.readUInt16LE(0x36)
    return {
      at,
      type: program.readUInt32LE(at),
      offset: Number(program.readBigUInt64LE(at + 0x08)),
      address: program.readBigUInt64LE(at + 0x10),
      size: Number(program.readBigUInt64LE(at + 0x20)),
    }
  })
}

/** Adds the path where libraries are searched, in one of the entries that linkers leave free. Names are relative to the table of names. */
function addRunPath(program: Buffer, { offset, size }: ProgramHeader, address: bigint): void {
  const entries = Array.from({ length: size / 16 }, (_, index) => {
    const at = offset + index * 16
    return { at, type: program.readBigUInt64LE(at), value: program.readBigUInt64LE(at + 8) }
  })
  const table = entries.find(({ type }) => type === BigInt(types.stringTable))
  const free = entries.findIndex(({ type }) => type === BigInt(types.null))
  const at = entries[free]?.at
  // The last one ends the list.
  if (!table || at === undefined || free + 1 >= entries.length) throw new Error('the program has no free dynamic entry')
  program.writeBigUInt64LE(BigInt(types.runPath), at)
  program.writeBigUInt64LE(BigInt.asUintN(64, address - table.value), at + 8)
}
