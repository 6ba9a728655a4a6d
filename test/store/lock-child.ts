import { openStore } from '../../src/store/open.ts'

// A router's database, open until the process is killed.
const store = await openStore(process.argv[2] ?? '', { asRouter: true })
process.stdout.write('claimed\n')
setInterval(() => store.keys.any(), 60_000)
