// Runs checks one after the other and prints a line of JSON for each.
let failures = 0;

export async function check(name, work) {
  let detail;
  let ok = true;
  try {
    detail = await work();
  } catch (error) {
    ok = false;
    failures += 1;
    detail = String(error.stack ?? error);
  }
  console.log(JSON.stringify({ name, ok, detail: detail ?? '' }));
}

export function finish() {
  process.exit(failures ? 1 : 0);
}
