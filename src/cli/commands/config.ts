/** `relay config`: the settings in force, where each comes from, secrets masked (SPEC S14.2). */
import { CONFIG_KEYS, exampleConfig, type LoadedConfig, maskConfig } from '../../app/config.ts';
import { toYaml } from '../../definition/yaml-text.ts';
import { type BuildCommand, type CommonOptions, configFor, examples } from '../command.ts';
import { colorsFor, type Io, printJson } from '../io.ts';

export const buildConfig: BuildCommand = (command, { io }) => {
  command
    .option('--example', 'print a commented config file instead')
    .addHelpText(
      'after',
      examples([
        ['relay config', 'settings in force and where they come from'],
        ['relay config --example > relay.config.yaml', 'start a config file'],
        ['RELAY_LOG=debug relay config --json', 'a variable wins over the file'],
      ]),
    )
    .action(async (options: CommonOptions & { example?: boolean }) => {
      const isJson = options.json === true;
      if (options.example === true) {
        if (isJson) printJson(io, { example: exampleConfig() });
        else io.out.write(exampleConfig());
        return;
      }
      const loaded = await configFor(options, io);
      if (isJson) printJson(io, { config: maskConfig(loaded.config), origins: loaded.origins });
      else print(loaded, io);
    });
};

/** A config file that would give the same settings; what is not set is a comment. */
function print({ config, origins }: LoadedConfig, io: Io): void {
  const colors = colorsFor(io.out, io.env);
  const shown = maskConfig(config);
  const blocks = CONFIG_KEYS.map((key) => {
    const isSet = shown[key] !== undefined;
    const [head = '', ...rest] = isSet
      ? toYaml({ [key]: shown[key] })
          .trimEnd()
          .split('\n')
      : [`# ${key}:`];
    return { head, rest, origin: isSet ? origins[key] : 'not set', isSet };
  });
  const width = Math.max(...blocks.map(({ head }) => head.length));
  for (const { head, rest, origin, isSet } of blocks) {
    const padding = ' '.repeat(width - head.length);
    io.out.write(`${isSet ? head : colors.dim(head)}${padding}  ${colors.dim(`# ${origin}`)}\n`);
    for (const line of rest) io.out.write(`${line}\n`);
  }
}
