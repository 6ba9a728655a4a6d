/** One step of the schema; a step that has been released is never edited, a change is a new step. */
export type Migration = { name: string; sql: string }
