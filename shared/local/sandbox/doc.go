// Package sandbox runs real Lambda bootstrap binaries on this machine: it is the part of Lambda between an event and
// the process that handles it. A Function owns execution environments; each is one process with a Runtime API
// listener and a private temporary directory of its own, and handles one invocation at a time.
//
// What holds, as on Lambda:
//
//   - A process sees only the variables that Lambda sets and the function's own.
//   - An invocation that outlives the function's timeout is ended by SIGKILL and answered with Sandbox.Timedout. After
//     that, after a panic and after any exit, the next invocation gets a new process in the same environment, whose
//     temporary directory is as the last process left it.
//   - The caller has the answer as soon as the runtime gives it; the environment takes its next event only once the
//     runtime has asked for it.
//   - A first init that fails or outlasts InitTimeout is tried once more, inside the function's timeout.
//
// What does not: processes are not frozen between invocations, memory is not limited, and the temporary directory is
// named by TMPDIR, so a program that writes to /tmp by that name shares it with the machine. Close gives every process a
// SIGTERM and time to leave, which Lambda gives only to a function with an extension.
//
// Rules are from https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html and
// https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html.
package sandbox
