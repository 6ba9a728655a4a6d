import { readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, matchesGlob } from 'node:path'
import { parseArgs } from 'node:util'
import { type CatalogFile, readList as readCatalog } from '../../src/catalog/read-list.ts'
import { readYaml } from '../../src/manifest/read/read-yaml.ts'
import { type ComparedCatalog, compare } from './compare.ts'
import { downloadList } from './download.ts'
import { readExceptions } from './exceptions.ts'
import { factNames, kindOf } from './listed.ts'
import { folderOfList, type List, listSources, readList } from './lists.ts'
import { disagreementText, type Report, reportOf } from './report.ts'

const usage = `Usage: npm run facts -- fetch | compare | verified
  fetch      downloads the packages with public lists (npm, pip) into the cache
  compare    compares the catalog with them; exits with 1 if a majority contradicts it without an exception
  verified   lists the entries that were checked against a page of the provider, the oldest first

  --provider <slug>       one provider; repeatable, patterns allowed
  --fact <name>           one of ${factNames.join(', ')}, or a kind: price, limit, ability, retirement; repeatable
  --all                   also what one list alone contradicts, what lists differ about, and models that one origin lists
  --list <name>=<path>    reads a list from a folder or a file, such as portkey=<clone of Portkey-AI/models>; repeatable
  --cache <folder>        (default: ${join(tmpdir(), 'inference-router-facts')})
  --day <day>             the day whose prices are compared (default: today)
  --catalog <folder>      another catalog, such as that of an earlier commit (default: catalog)
  --json                  prints the report as JSON`

const options = {
  provider: { type: 'string', multiple: true, default: [] as string[] },
  fact: { type: 'string', multiple: true, default: [] as string[] },
  list: { type: 'string', multiple: true, default: [] as string[] },
  all: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  catalog: { type: 'string', default: join(import.meta.dirname, '../../catalog') },
  cache: { type: 'string', default: join(tmpdir(), 'inference-router-facts') },
  day: { type: 'string', default: new Date().toISOString().slice(0, 10) },
} as const

const { values, positionals } = parseArgs({ allowPositionals: true, options })

/** Reads the catalog files of the chosen providers. */
function catalogs(): ComparedCatalog[] {
  const folder = values.catalog
  const chosen = values.provider
  return readdirSync(folder).flatMap((name) => {
    const file = readYaml(readFileSync(join(folder, name), 'utf8'))?.value as CatalogFile & ComparedCatalog
    const { provider, listed_as: listedAs } = file
    if (chosen.length > 0 && !chosen.some((pattern) => matchesGlob(provider, pattern))) return []
    return [{ provider, models: readCatalog(file).models, ...(listedAs && { listed_as: listedAs }) }]
  })
}

async function lists(): Promise<List[]> {
  const named = new Map(values.list.map((text) => text.split(/=(.*)/s) as [string, string]))
  const found: List[] = []
  for (const source of listSources()) {
    const folder = named.get(source.name) ?? folderOfList(values.cache, source)
    const list = await readList(source, folder, values.day)
    if (list) found.push(list)
    else
      console.error(
        `${source.name} is not there: ${source.package ? 'run `npm run facts -- fetch`' : 'name its folder with --list'}`,
      )
  }
  return found
}

function fetchLists(): void {
  for (const source of listSources()) {
    const { name, package: from } = source
    if (from) console.log(`${name} ${from.version}: ${downloadList({ ...source, package: from }, values.cache)}`)
  }
}

async function compareLists(): Promise<void> {
  const read = await lists()
  if (new Set(read.map(({ origin }) => origin)).size < 2) throw new Error('A majority needs lists of two origins.')
  const comparison = compare(catalogs(), read, values.day)
  const isChosen = ({ fact }: { fact: (typeof factNames)[number] }) =>
    values.fact.length === 0 || values.fact.includes(fact) || values.fact.includes(kindOf(fact))
  const disagreements = comparison.disagreements.filter(isChosen)
  const report = reportOf({ ...comparison, disagreements }, readExceptions())
  if (values.json) console.log(JSON.stringify(report, null, 1))
  else print(report, read)
  if (report.open.length > 0 || report.missing.length > 0) process.exitCode = 1
}

function print(report: Report, read: readonly List[]): void {
  const { open, missing, uncertain, rumoured, stale, counts } = report
  for (const one of open) console.log(disagreementText(one))
  for (const one of missing) console.log(`${one.provider}/${one.model} is not listed here: ${one.origins.join(', ')}`)
  if (values.all) {
    console.log('\nUncertain:')
    for (const one of uncertain) console.log(disagreementText(one))
    for (const one of rumoured) console.log(`${one.provider}/${one.model} is not listed here: ${one.origins.join()}`)
  }
  // Whole providers are needed to know that an exception explains nothing.
  if (values.provider.length === 0 && values.fact.length === 0) {
    for (const { models, because } of stale)
      console.log(`An exception explains nothing: ${models.join(', ')} (${because})`)
  }
  console.log(
    `\nLists: ${read.map(({ name, as_of: asOf, models }) => `${name} ${asOf} (${models.length})`).join(', ')}`,
  )
  console.table(counts)
  console.log(
    `Models that lists have and the catalog has not: ${missing.length} by a majority, ${rumoured.length} by one origin.`,
  )
}

function printVerified(): void {
  const verified = catalogs().flatMap(({ provider, models }) =>
    Object.entries(models).flatMap(([model, { verified: of }]) =>
      of ? [{ model: `${provider}/${model}`, ...of }] : [],
    ),
  )
  const byAge = verified.toSorted((one, other) => (one.on < other.on ? -1 : Number(one.on > other.on)))
  for (const { model, on, page } of byAge) console.log(`${on} ${model} ${page}`)
}

switch (positionals[0]) {
  case 'fetch':
    fetchLists()
    break
  case 'compare':
    await compareLists()
    break
  case 'verified':
    printVerified()
    break
  default:
    console.log(usage)
    process.exitCode = positionals.length === 0 ? 0 : 1
}
