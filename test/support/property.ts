/** Random values from one seed, so that nobody's change fails by chance; `npm run test:long` looks further each time. */
import * as fc from 'fast-check';

if (process.env.RELAY_LONG !== 'yes') fc.configureGlobal({ seed: 20 });

export { fc };
