// Package wal is a write-ahead log for one process: appends that are there whole or not at all, positions that never
// repeat, damage that is found and told, and many writers that share one write and one sync.
//
// # Guarantee
//
//   - An append that returned nil at Volatile is read back by every Scan and every later Open on the same running host,
//     until it is truncated. At Synced it also survives the end of the host.
//   - An append that returned an error is never read back, now or later, unless the error wraps ErrUncertain.
//   - All entries of one Append are there or none is.
//   - Positions grow. One that was ever returned is not used for another record, also not after the disk has lost it.
//   - No byte that fails its checksum is returned. Damage is told with segment, offset and the exact number of records
//     lost; every intact frame behind it is still read. The damaged bytes are kept in a file of their own.
//   - All segments together stay within MaxBytes, and a handful of files is open, however many there are.
//   - One owner at a time.
//
// # No guarantee
//
//   - A record at Volatile may be lost with the host. Flush(Synced) ends that.
//   - Damage at the very end of the newest segment looks like an append that a crash tore, and is cut off as one. Open
//     tells how many bytes it cut.
//   - Whoever deletes the newest file by hand deletes it without a trace: its records are gone, and their positions may
//     be used again.
//   - The log does not encrypt, compress or replicate.
//
// # Bytes on disk
//
// A directory holds segments, named by a serial number of 20 digits that only grows, and the file LOCK, which names
// the owner. A segment is a header of 1,024 bytes and frames behind it, all numbers little-endian:
//
//	segment  | header | the same header again | frame | frame | ... | zeroes |
//
//	header   0       8      12       20      28     36        44         52       60          68     76   508   512
//	         | magic | salt | serial | first | prev | prevEnd | prevLast | before | truncated | gone | 0... | crc |
//
//	frame    0     4      5         6      7   8        12      16      24
//	         | crc | 0xA7 | version | kind | 0 | length | count | first | payload, length bytes |
//
//	records  | id length, data length (uvarints), count times | all ids | all data |
//
// magic is "ABCSWAL" and the version, 1. crc is CRC-32C over all that follows it in the frame, begun with the segment's
// salt, so that neither bytes left by an older file nor a frame inside somebody's data passes for a frame; the header's
// covers what is before it. kind is 1 for records, 2 for a truncation (payload: the position truncated through, and how
// many records were ever appended up to it), 3 for an orderly close. first is the position of the frame's first record,
// or of the next one to come; so any two intact frames tell how many records were between them.
//
// The header reserves the positions from first to first+2^20-1 before any is handed out, and says where the segment
// before it (prev) ends: bytes behind prevEnd there are void. before is how many records were ever appended below
// first, gone how many up to truncated, so that the loss of whole segments is counted. DESIGN.md tells why.
//
// Beside them may lie NAME.new, a segment that a crash caught in the making, and NAME@OFFSET.damaged and NAME.damaged,
// bytes and files that could not be read and are kept for whoever wants to look; the log never deletes those. Inspect,
// and the command abacus wal inspect, print all this without changing it.
package wal
