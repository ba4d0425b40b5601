package envelope

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// keptBuffer bounds how much memory an idle gunzip holds on to.
const keptBuffer = 1 << 20

// gunzip is the state of one decompression, kept because it is costly to set up.
type gunzip struct {
	reader gzip.Reader
	source bytes.Reader
	out    bytes.Buffer
}

func (o *Opener) openGzip(payload []byte, left *allowance, inner func([]byte) error) error {
	g, _ := o.gunzips.Get().(*gunzip)
	if g == nil {
		g = new(gunzip)
	}
	g.source.Reset(payload)
	g.out.Reset()
	err := g.reader.Reset(&g.source)
	if err == nil {
		_, err = g.out.ReadFrom(io.LimitReader(&g.reader, int64(left.bytes)+1))
	}
	if err != nil {
		return fmt.Errorf("%w: gzip: %w; send it whole", ErrPayload, err)
	}
	if err := left.spend(g.out.Len()); err != nil {
		return err
	}
	err = inner(g.out.Bytes())
	if g.out.Cap() <= keptBuffer {
		o.gunzips.Put(g)
	}
	return err
}

func (o *Opener) openZstd(payload []byte, left *allowance, inner func([]byte) error) error {
	decoder, err := o.unzstd()
	if err != nil {
		return fmt.Errorf("set up zstd: %w", err)
	}
	out, err := decoder.DecodeAll(payload, nil)
	if err != nil {
		return fmt.Errorf("%w: zstd: %w; send it whole, without a dictionary, at most %d bytes unpacked",
			ErrPayload, err, o.maxUnpacked)
	}
	if err := left.spend(len(out)); err != nil {
		return err
	}
	return inner(out)
}

// spend takes n unpacked bytes from what is left.
func (a *allowance) spend(n int) error {
	if a.bytes -= n; a.bytes < 0 {
		return fmt.Errorf("%w: it unpacks to more than %d bytes; send smaller records", ErrPayload, MaxUnpacked)
	}
	return nil
}
