import type { CallOptions } from '@connectrpc/connect';
import { type ComponentChildren, isValidElement, type TargetedEvent } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { randomKey } from './format.ts';
import { type Problem, problemOf, useSession } from './session.ts';
import { announce, ProblemBox } from './ui.tsx';

/** A field of a dialog. */
export interface Field {
  readonly name: string;
  readonly label: string;
  readonly type?: 'text' | 'number' | 'datetime-local' | 'checkbox' | 'file';
  /** The values to choose from, and their labels. */
  readonly options?: readonly (readonly [value: string, label: string])[];
  readonly help?: string;
  readonly value?: string;
  readonly isOptional?: boolean;
  readonly maxLength?: number;
}

/** What the operator entered, by the name of the field; a file is not among them. */
export type Values = Readonly<Record<string, string>> & { readonly reason: string };

/** A change that the operator can make, in a dialog. */
export interface Change {
  /** The button, such as `Suspend`. */
  readonly label: string;
  /** The heading of the dialog: a question if it confirms something. */
  readonly title: string;
  /** What the change does. */
  readonly text: string;
  readonly fields?: readonly Field[];
  /** Whether it takes a reason for the audit log; it does by default. */
  readonly hasReason?: boolean;
  readonly isDanger?: boolean;
  /** Scopes that it needs besides `OPERATE`, or in its place. */
  readonly scope?: 'OPERATE' | 'ESCROW';
  /** Makes the change. If it returns an element, the dialog shows it once. */
  run(values: Values, options: CallOptions, form: FormData): Promise<unknown>;
}

/** A button for each change that the token allows. `done` is called when the dialog of a change that was made is closed. */
export function Actions({ of, done }: { of: readonly (Change | false)[]; done: () => void }) {
  const session = useSession();
  const changes = of.filter((change) => change !== false && session.can(change.scope ?? 'OPERATE'));
  if (changes.length === 0) return null;
  return (
    <div class="actions">
      {changes.map((change) => change && <Action key={change.label} change={change} done={done} />)}
    </div>
  );
}

function Action({ change, done }: { change: Change; done: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  // The change may remove its own button, which had the focus.
  useLayoutEffect(
    () => () => {
      if (button.current === document.activeElement) document.querySelector('h1')?.focus();
    },
    [],
  );
  return (
    <>
      <button
        ref={button}
        type="button"
        class={change.isDanger ? 'danger' : ''}
        onClick={() => setOpen(true)}
      >
        {change.label}
      </button>
      {isOpen && <Dialog change={change} close={() => setOpen(false)} done={done} />}
    </>
  );
}

/** Makes the change of a dialog, once at a time. */
function useChange({ run }: Change) {
  const [state, setState] = useState<{ isBusy?: boolean; problem?: Problem; result?: ComponentChildren }>({});
  // The same values are sent with the same key, until the server has answered: then a repetition changes nothing.
  const sent = useRef({ text: '', key: '' });
  const make = async (form: HTMLFormElement) => {
    const data = new FormData(form);
    const values: Record<string, string> & { reason: string } = { reason: '' };
    for (const [name, value] of data) if (typeof value === 'string') values[name] = value.trim();
    const text = JSON.stringify(values);
    if (sent.current.text !== text) sent.current = { text, key: randomKey() };
    setState({ isBusy: true });
    try {
      const result = await run(values, { headers: { 'Idempotency-Key': sent.current.key } }, data);
      setState({ result: isValidElement(result) ? result : '' });
    } catch (error) {
      const problem = problemOf(error);
      if (!problem.isOpen) sent.current = { text: '', key: '' };
      setState({ problem });
    }
  };
  return { ...state, make };
}

function Dialog({ change, close, done }: { change: Change; close: () => void; done: () => void }) {
  const { title, text, fields = [], hasReason = true, isDanger, label } = change;
  const { isBusy = false, problem, result, make } = useChange(change);
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const isDone = result !== undefined;
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    if (!isDone) return;
    announce(`${label}: done.`);
    if (result === '') dialog.current?.close();
  }, [isDone, result, label]);
  const submit = (event: TargetedEvent<HTMLFormElement>) => {
    event.preventDefault();
    void make(event.currentTarget);
  };
  const closed = () => {
    close();
    if (isDone) done();
  };
  return (
    <dialog
      ref={dialog}
      aria-labelledby={heading}
      onClose={closed}
      onCancel={(event) => isBusy && event.preventDefault()}
    >
      <form onSubmit={submit}>
        <h2 id={heading}>{title}</h2>
        {isDone ? (
          <>
            {result}
            <div class="buttons">
              <button type="button" class="main" onClick={() => dialog.current?.close()}>
                Close
              </button>
            </div>
          </>
        ) : (
          <>
            <p>{text}</p>
            {fields.map((field) => (
              <Input key={field.name} field={field} />
            ))}
            {hasReason && <Input field={reasonField} />}
            {problem !== undefined && <ProblemBox problem={problem} />}
            <div class="buttons">
              <button type="button" disabled={isBusy} onClick={() => dialog.current?.close()}>
                Cancel
              </button>
              <button type="submit" class={isDanger ? 'danger main' : 'main'} disabled={isBusy}>
                {isBusy ? 'Please wait…' : label}
              </button>
            </div>
          </>
        )}
      </form>
    </dialog>
  );
}

const reasonField: Field = {
  name: 'reason',
  label: 'Reason',
  help: 'The audit log keeps it.',
  maxLength: 500,
};

function Input({ field }: { field: Field }) {
  const { name, label, type = 'text', options, help, value, isOptional = false, maxLength } = field;
  const id = useId();
  const described = help === undefined ? {} : { 'aria-describedby': `${id}-help` };
  const common = { id, name, required: !isOptional, ...described };
  if (type === 'checkbox')
    return (
      <label class="check">
        <input {...common} required={false} type="checkbox" value="on" defaultChecked={value === 'on'} />{' '}
        {label}
      </label>
    );
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isOptional && <span class="quiet"> (optional)</span>}
      </label>
      {options === undefined ? (
        <input
          {...common}
          type={type as 'text'}
          defaultValue={value ?? ''}
          maxLength={maxLength}
          autocomplete="off"
        />
      ) : (
        <select {...common}>
          {options.map(([option, text]) => (
            <option key={option} value={option} selected={option === value}>
              {text}
            </option>
          ))}
        </select>
      )}
      {help !== undefined && (
        <p id={`${id}-help`} class="quiet">
          {help}
        </p>
      )}
    </div>
  );
}
