// Package demo counts a file of events end to end on one machine and shows that nothing was lost and nothing counted
// twice. It publishes the events half through Kinesis and half through SQS, every tenth of them twice and a few bad
// records among them, waits until the real functions have drained both sources, and compares every counter with a count
// of the same file that shares no code with the suite.
package demo
