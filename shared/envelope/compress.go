package envelope

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// keptBuffer bounds how much memory an idle gunzip holds on to.
const keptBuffer = 1 << 20

func isGzip(payload []byte) bool { return bytes.HasPrefix(payload, []byte("\x1f\x8b")) }
func isZstd(payload []byte) bool { return bytes.HasPrefix(payload, []byte("\x28\xb5\x2f\xfd")) }

// gunzip is the state of one decompression, kept because it is costly to set up.
type gunzip struct {
	reader gzip.Reader
	source bytes.Reader
	out    bytes.Buffer
}

func (w *walk) gzip(payload []byte) error {
	g, _ := w.gunzips.Get().(*gunzip)
	if g == nil {
		g = new(gunzip)
	}
	g.source.Reset(payload)
	g.out.Reset()
	err := g.reader.Reset(&g.source)
	if err == nil {
		_, err = g.out.ReadFrom(io.LimitReader(&g.reader, int64(w.bytes)+1))
	}
	if err != nil {
		return fmt.Errorf("%w: gzip: %w; send it whole", ErrPayload, err)
	}
	if err := w.spend(g.out.Len()); err != nil {
		return err
	}
	err = w.inner(g.out.Bytes())
	if g.source.Reset(nil); g.out.Cap() <= keptBuffer {
		w.gunzips.Put(g)
	}
	return err
}

func (w *walk) zstd(payload []byte) error {
	decoder, err := w.unzstd()
	if err != nil {
		return fmt.Errorf("set up zstd: %w", err)
	}
	out, err := decoder.DecodeAll(payload, nil)
	if err != nil {
		return fmt.Errorf("%w: zstd: %w; send it whole, without a dictionary, at most %d bytes unpacked",
			ErrPayload, err, w.maxUnpacked)
	}
	if err := w.spend(len(out)); err != nil {
		return err
	}
	return w.inner(out)
}

// spend takes n unpacked bytes from what is left.
func (w *walk) spend(n int) error {
	if w.bytes -= n; w.bytes < 0 {
		return fmt.Errorf("%w: it unpacks to more than %d bytes; send smaller records", ErrPayload, w.maxUnpacked)
	}
	return nil
}
