import { spawn } from 'node:child_process'
import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { parse } from 'csv-parse/sync'
import { isObject } from '../../core/json.ts'
import { CommandError } from '../command.ts'
import { insertedRows } from './sql-values.ts'

/** One row of a table by its columns: JSON values, or texts as PostgreSQL writes them. */
export type Row = { [column: string]: unknown }

/** The rows of LiteLLM's tables that are imported. */
export type LitellmRows = { [table in (typeof tables)[number]]: Row[] }

const tables = [
  'LiteLLM_VerificationToken',
  'LiteLLM_TeamTable',
  'LiteLLM_BudgetTable',
  'LiteLLM_OrganizationTable',
  'LiteLLM_UserTable',
  'LiteLLM_ProxyModelTable',
] as const

type Table = (typeof tables)[number]

/** Returns no rows. */
export function noRows(): LitellmRows {
  return Object.fromEntries(tables.map((table) => [table, []])) as unknown as LitellmRows
}

/**
 * Reads the tables of a LiteLLM database from an export: a dump of pg_dump, a folder of CSV files or one of them, JSON, or a URL, for which
 * psql must be installed. Throws CommandError.
 */
export async function readRows(from: string): Promise<LitellmRows> {
  if (/^postgres(?:ql)?:\/\//.test(from)) return await rowsOfServer(from)
  if (!existsSync(from)) throw new CommandError(`There is no file or folder ${from}.`)
  if (statSync(from).isDirectory()) {
    const files = readdirSync(from).filter((name) => /\.(?:csv|json)$/.test(name))
    return joined(files.map((name) => rowsOfFile(join(from, name))))
  }
  return /\.(?:csv|json)$/.test(from) ? rowsOfFile(from) : await rowsOfDump(from)
}

function joined(parts: readonly LitellmRows[]): LitellmRows {
  const all = noRows()
  for (const part of parts) for (const table of tables) all[table].push(...part[table])
  return all
}

function tableOf(name: string): Table | undefined {
  const plain = name.replace(/^.*\./, '').replaceAll('"', '').toLowerCase()
  return tables.find((table) => table.toLowerCase() === plain)
}

function rowsOfFile(file: string): LitellmRows {
  const rows = noRows()
  const text = readFileSync(file, 'utf8')
  try {
    if (file.endsWith('.json')) addJson(rows, JSON.parse(text), basename(file, '.json'))
    else {
      const table = tableOf(basename(file, '.csv'))
      if (table) rows[table].push(...(parse(text, { columns: true, bom: true, skip_empty_lines: true }) as Row[]))
    }
  } catch (thrown) {
    throw new CommandError(`${file}: ${(thrown as Error).message}`)
  }
  return rows
}

/** Adds rows of JSON: tables by their names, or the answers of LiteLLM's `/key/list?return_full_object=true` and `/team/list`. */
function addJson(rows: LitellmRows, value: unknown, name: string): void {
  if (Array.isArray(value)) {
    const objects = value.filter(isObject)
    const table = tableOf(name) ?? (objects[0] && tableLike(objects[0]))
    if (table) rows[table].push(...objects)
    return
  }
  if (!isObject(value)) return
  const members: { readonly [member: string]: Table } = {
    keys: 'LiteLLM_VerificationToken',
    teams: 'LiteLLM_TeamTable',
  }
  for (const [member, list] of Object.entries(value)) {
    const table = tableOf(member) ?? members[member]
    if (table && Array.isArray(list)) rows[table].push(...list.filter(isObject))
  }
}

function tableLike(row: Row): Table | undefined {
  if ('token' in row) return 'LiteLLM_VerificationToken'
  return 'team_id' in row ? 'LiteLLM_TeamTable' : undefined
}

/** Reads a dump line by line: other tables, such as the logs of calls, may be large. */
async function rowsOfDump(file: string): Promise<LitellmRows> {
  const rows = noRows()
  let copy: { table: Table | undefined; columns: string[] } | undefined
  let insert = ''
  for await (const line of createInterface({
    input: createReadStream(file, 'utf8'),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    if (copy) {
      if (line === '\\.') copy = undefined
      else if (copy.table) rows[copy.table].push(copiedRow(line, copy.columns))
      continue
    }
    if (insert === '') {
      const [, name = '', columns = ''] = /^COPY (\S+) \((.*)\) FROM stdin;$/.exec(line) ?? []
      if (name !== '') {
        copy = { table: tableOf(name), columns: columns.split(', ').map(unquoted) }
        continue
      }
      const table = /^INSERT INTO (\S+) /.exec(line)?.[1]
      if (table === undefined || !tableOf(table)) continue
    }
    insert = insert === '' ? line : `${insert}\n${line}`
    const found = insertedRows(insert)
    if (found === undefined) continue
    insert = ''
    const table = tableOf(found.table)
    if (table) rows[table].push(...found.rows)
  }
  if (insert !== '')
    throw new CommandError(`${file}: an INSERT of ${insert.slice(0, 60)}… cannot be read; use pg_dump --column-inserts`)
  return rows
}

function unquoted(name: string): string {
  return name.replace(/^"|"$/g, '')
}

const escapes: { readonly [letter: string]: string } = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

/** Returns a row in the text format of COPY; `\N` is null. */
function copiedRow(line: string, columns: readonly string[]): Row {
  const cells = line.split('\t')
  return Object.fromEntries(
    columns.map((column, index) => {
      const cell = cells[index] ?? '\\N'
      return [column, cell === '\\N' ? null : cell.replace(/\\(.)/g, (_, letter: string) => escapes[letter] ?? letter)]
    }),
  )
}

/** Reads the tables of a server with psql. The password goes through its environment, where other users do not see it. */
async function rowsOfServer(address: string): Promise<LitellmRows> {
  const url = URL.parse(address)
  if (!url) throw new CommandError('--database is not an address: postgresql://user:password@host:5432/litellm')
  const rows = noRows()
  const env = {
    ...process.env,
    PGHOST: url.hostname,
    PGPORT: url.port || '5432',
    PGUSER: decodeURIComponent(url.username),
    PGPASSWORD: decodeURIComponent(url.password),
    PGDATABASE: decodeURIComponent(url.pathname.slice(1)),
    PGSSLMODE: url.searchParams.get('sslmode') ?? 'prefer',
    PGCONNECT_TIMEOUT: '10',
    // The parameter of Prisma, which LiteLLM passes the address to.
    ...(url.searchParams.has('schema') && {
      PGOPTIONS: `-c search_path=${JSON.stringify(url.searchParams.get('schema')).replaceAll(' ', '\\ ')}`,
    }),
  }
  const visible = await psql('SELECT relname FROM pg_class WHERE pg_table_is_visible(oid)', env)
  const there = new Set(visible.split('\n'))
  if (!there.has('LiteLLM_VerificationToken')) throw new CommandError(otherDatabase)
  // Earlier versions lack some.
  for (const table of tables.filter((name) => there.has(name))) {
    const text = await psql(`SELECT row_to_json(t) FROM "${table}" t`, env)
    rows[table] = text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Row)
  }
  return rows
}

function psql(query: string, env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('psql', ['-X', '-q', '-A', '-t', '-w', '-c', query], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let [output, failure] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      failure += text
    })
    child.on('error', () => reject(new CommandError(withoutDriver)))
    child.on('close', (code) => {
      if (code === 0) resolve(output)
      else reject(new CommandError(`psql: ${failure.trim().replace(/^psql: (?:error: )?/, '')}`))
    })
  })
}

const otherDatabase =
  'The database has no table LiteLLM_VerificationToken: name the database of LiteLLM, and its schema if that is not public: postgresql://…/litellm?schema=NAME'

const withoutDriver =
  'psql is not installed, which reads a database by its address. Export the tables where it is, and name the file: ' +
  `pg_dump --data-only -t '"LiteLLM_VerificationToken"' -t '"LiteLLM_TeamTable"' -t '"LiteLLM_BudgetTable"' ` +
  `-t '"LiteLLM_UserTable"' -t '"LiteLLM_OrganizationTable"' -t '"LiteLLM_ProxyModelTable"' litellm > litellm.sql`
