/** Which statement lists runs: where one of them would walk over all runs to find a few, another goes along an index. */

/** All of them take the same parameters. */
export function listStatement(status: string | undefined, workflow_name: string | undefined): string {
  if (workflow_name !== undefined) return 'runs.list_by_workflow';
  return status === undefined ? 'runs.list' : 'runs.list_by_status';
}
