//! Bytes that a client of a task in Python keeps, as the numbers of its private state.
//!
//! Private state is `f32`. Three bytes are a whole number below 2²⁴, which `f32` holds exactly, so that a state may
//! pass wherever numbers are checked, copied and saved. The first number is how many bytes the last one has, 0 if there
//! is none.

const GROUP: usize = 3;

/// Bytes as numbers, at least one.
pub fn pack(bytes: &[u8]) -> Vec<f32> {
    let groups = bytes.chunks(GROUP);
    let last = groups.len().checked_sub(1).map_or(0, |before| bytes.len() - before * GROUP);
    let number = |group: &[u8]| group.iter().rev().fold(0_u32, |number, &byte| number << 8 | u32::from(byte)) as f32;
    std::iter::once(last as f32).chain(groups.map(number)).collect()
}

/// The bytes again; `None` if the numbers are no packed bytes.
pub fn unpack(numbers: &[f32]) -> Option<Vec<u8>> {
    let (&last, groups) = numbers.split_first()?;
    let mut bytes = Vec::with_capacity(groups.len() * GROUP);
    for &number in groups {
        let is_group = (0.0..16_777_216.0).contains(&number) && number.fract() == 0.0;
        bytes.extend_from_slice(&(is_group.then_some(number as u32)?).to_le_bytes()[..GROUP]);
    }
    let is_length = if groups.is_empty() { last == 0.0 } else { [1.0, 2.0, 3.0].contains(&last) };
    bytes.truncate(is_length.then(|| (groups.len().saturating_sub(1)) * GROUP + last as usize)?);
    Some(bytes)
}
