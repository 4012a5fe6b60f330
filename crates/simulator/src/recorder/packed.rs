//! A gzip file that is written in pieces, so that its writer can stop between any two bytes and go on later.
//!
//! # Definition
//! One gzip member (RFC 1952). Every [`BLOCK`] bytes are deflated on their own and flushed to a byte's end (RFC 1951,
//! an empty stored block), so that a piece depends on no other and pieces follow each other as one stream. Deflated
//! bytes are in the file; the others are less than a block, and go with checksum and length into the state.
//! # Cost
//! A few bytes and an empty dictionary per block: about 1 % of the packed size. Bytes are gathered before they are
//! packed, as an encoder clears a window of its own at each write.

use fedgenie_core::state::Stateful;
use flate2::{Compress, Compression, FlushCompress, Status};
use std::io::{self, Write};

/// Bytes that are deflated together.
pub(super) const BLOCK: usize = 1 << 18;

/// Deflate, no flags, no time, fastest, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 0xff];

/// Packs its input into another writer. Dropping it ends its file, so that the output of a failed run can be read.
#[derive(Debug, Stateful)]
#[state(check = Self::is_sound)]
pub(super) struct Packed<W: Write> {
    /// `None` once the file has ended.
    #[state(skip = "the file itself")]
    out: Option<W>,
    #[state(skip = "each block is packed by itself")]
    encoder: Compress,
    /// Bytes that are not deflated yet; shorter than [`BLOCK`].
    block: Vec<u8>,
    /// CRC-32 of the deflated bytes.
    checksum: u32,
    /// Number of the deflated bytes.
    length: u64,
    #[state(skip = "a buffer of one block")]
    packed: Vec<u8>,
}

impl<W: Write> Packed<W> {
    /// Begins a file.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&HEADER)?;
        Ok(Self::going_on(out))
    }

    /// Goes on with a file that was begun, once its state is loaded.
    pub fn going_on(out: W) -> Self {
        let encoder = Compress::new(Compression::fast(), false);
        Self { out: Some(out), encoder, block: Vec::new(), checksum: 0, length: 0, packed: Vec::new() }
    }

    /// The writer of the packed bytes.
    pub const fn inner_mut(&mut self) -> &mut W {
        self.out.as_mut().expect("only the end of the file takes its writer")
    }

    /// Packs the rest, ends the file and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.end()
    }

    fn end(&mut self) -> io::Result<W> {
        self.pack(FlushCompress::Finish)?;
        let mut out = self.out.take().expect("a file ends once");
        out.write_all(&self.checksum.to_le_bytes())?;
        // The format counts modulo 2³².
        out.write_all(&(self.length as u32).to_le_bytes())?;
        Ok(out)
    }

    fn pack(&mut self, flush: FlushCompress) -> io::Result<()> {
        let Self { out, encoder, block, checksum, length, packed } = self;
        let mut hasher = crc32fast::Hasher::new_with_initial_len(*checksum, *length);
        hasher.update(block);
        (*checksum, *length) = (hasher.finalize(), *length + block.len() as u64);
        encoder.reset();
        packed.clear();
        loop {
            packed.reserve(block.len() / 2 + 64);
            let rest = &block[encoder.total_in() as usize..];
            let status = encoder.compress_vec(rest, packed, flush)?;
            // Room left in the buffer means that the encoder has no more output.
            let is_flushed = encoder.total_in() == block.len() as u64 && packed.len() < packed.capacity();
            if status == Status::StreamEnd || flush == FlushCompress::Sync && is_flushed {
                break;
            }
        }
        block.clear();
        out.as_mut().expect("only the end of the file takes its writer").write_all(packed)
    }
}

impl<W: Write> Drop for Packed<W> {
    fn drop(&mut self) {
        if self.out.is_some() {
            // An error cannot be reported from here.
            let _ = self.end();
        }
    }
}

impl<W: Write> Write for Packed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        if self.block.len() == BLOCK {
            self.pack(FlushCompress::Sync)?;
        }
        Ok(taken)
    }

    /// Flushes the packed bytes; blocks do not depend on calls of this.
    fn flush(&mut self) -> io::Result<()> {
        self.inner_mut().flush()
    }
}

impl<W: Write> Packed<W> {
    const fn is_sound(&self) -> bool {
        self.block.len() < BLOCK
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::state::State;
    use flate2::read::{GzDecoder, GzEncoder};
    use std::io::Read;

    /// Lines that repeat themselves somewhat, and noise.
    fn text(bytes: usize) -> Vec<u8> {
        let mut word = 1_u32;
        let mut noise = || {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            word >> 20
        };
        let mut text = Vec::new();
        while text.len() < bytes {
            text.extend(format!("{{\"client\":{},\"phase\":\"upload\"}}\n", noise()).into_bytes());
        }
        text.truncate(bytes);
        text
    }

    fn packed(text: &[u8], piece: usize) -> Vec<u8> {
        let mut packed = Packed::new(Vec::new()).unwrap();
        text.chunks(piece).for_each(|piece| packed.write_all(piece).unwrap());
        packed.finish().unwrap()
    }

    /// A reader of single members gets everything; sizes are around ends of blocks.
    #[test]
    fn one_member_holds_everything() {
        for bytes in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 77_777] {
            let (text, mut found) = (text(bytes), Vec::new());
            let file = packed(&text, 4_099);
            GzDecoder::new(&*file).read_to_end(&mut found).unwrap();
            assert!(found == text, "{bytes} bytes");
            assert_eq!(file, packed(&text, 100_000), "pieces do not matter");
        }
    }

    #[test]
    fn who_goes_on_writes_the_same_bytes() {
        let text = text(2 * BLOCK + 1_000);
        let whole = packed(&text, text.len());
        for cut in [0, 1, BLOCK - 1, BLOCK, BLOCK + 5, 2 * BLOCK, text.len()] {
            let mut first = Packed::new(Vec::new()).unwrap();
            first.write_all(&text[..cut]).unwrap();
            let state = State::save(&mut first).unwrap();
            let mut second = Packed::going_on(first.out.take().unwrap());
            State::load(&mut second, &state).unwrap();
            second.write_all(&text[cut..]).unwrap();
            assert!(second.finish().unwrap() == whole, "{cut} bytes first");
        }
    }

    #[test]
    fn noise_is_packed_and_blocks_cost_little() {
        let noise: Vec<u8> = (0..BLOCK as u32 + 9).map(|i| blake3::hash(&i.to_le_bytes()).as_bytes()[0]).collect();
        let mut found = Vec::new();
        GzDecoder::new(&*packed(&noise, 1_000)).read_to_end(&mut found).unwrap();
        assert!(found == noise);
        let (text, mut whole) = (text(8 * BLOCK), Vec::new());
        GzEncoder::new(&*text, Compression::fast()).read_to_end(&mut whole).unwrap();
        let (ours, theirs) = (packed(&text, 50_000).len() as f64, whole.len() as f64);
        assert!(ours < 1.02 * theirs, "{ours} and {theirs} bytes");
    }
}
